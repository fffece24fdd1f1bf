"""The libraries of TensorFlow 1's years that `tools/libraries.py` runs, and what of each."""

from __future__ import annotations

from dataclasses import dataclass, field

# `tf.keras`, for those whose tests ask for it.
KERAS = ("keras-applications==1.0.8", "keras-preprocessing==1.1.2", "Keras==2.2.5")
PROBABILITY = "tensorflow-probability==0.7.0"
ESTIMATOR = "tensorflow-estimator==1.15.2"
EAGER = "it starts with eager execution"
SONNET = "dm-sonnet==1.36"
HUB = "tensorflow-hub==0.7.0"
ATTENTION = "keras-self-attention==0.41.0"
HEADS = "keras-multi-head==0.22.0"
TRANSFORMER = "keras-transformer==0.31.0"
SLIM = "tf_slim==1.1.0"
WHOLE = "whole networks on images, minutes each"


@dataclass(frozen=True)
class Suite:
    """A library, and where its tests are: in site-packages, or in its unpacked source archive."""

    name: str
    requirement: str
    tests: tuple[str, ...]
    from_source: bool = False
    # Another version of it is there for others: it goes into a folder that only its own tests see.
    apart: bool = False
    beside: tuple[str, ...] = ()  # what goes into that folder as well, without what it asks for
    # It carries no tests: what runs is a program of ours in tools/library_programs.
    program: bool = False
    plugins: tuple[str, ...] = ()  # of pytest, beside those that all have
    needs: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()  # more needs, without what they ask for: that would be TensorFlow
    left_out: dict[str, str] = field(default_factory=dict)  # path -> why
    # What in the library itself makes its tests fail at random, if that is known: then a test that
    # fails is run again, and fails only if it always does.
    races: str = ""


KERAS_TESTS = (
    "tests/keras", "tests/test_model_saving.py", "tests/test_loss_masking.py",
    "tests/test_loss_weighting.py", "tests/test_model_pickling.py",
    "tests/test_dynamic_trainability.py",
)  # fmt: skip
KERAS_LEFT_OUT = {
    "tests/keras/datasets": "downloads data",
    "tests/keras/wrappers": "scikit-learn has changed its protocol",
    "tests/keras/utils/data_utils_test.py": "downloads data",
}

SUITES = (
    Suite(
        "tf_slim", SLIM, ("tf_slim",),
        left_out={"tf_slim/nets": f"{WHOLE}: --nets runs them"},
    ),
    Suite(
        "Keras", "Keras==2.2.5", KERAS_TESTS, from_source=True,
        needs=("keras-applications==1.0.8", "keras-preprocessing==1.1.2", "flaky", "pytest-xdist"),
        left_out=KERAS_LEFT_OUT,
    ),
    Suite(
        "Keras 2.3", "Keras==2.3.1", KERAS_TESTS, from_source=True, apart=True,
        needs=("keras-applications==1.0.8", "keras-preprocessing==1.1.2", "flaky", "pytest-xdist"),
        left_out=KERAS_LEFT_OUT,
    ),
    Suite(
        "tflearn", "tflearn==0.5.0", ("tests",), from_source=True, needs=("pytest-rerunfailures",),
        races="it shuffles the indices of samples in place while its feeding threads still read the"
        " batches of the last epoch from them, so that now and then it trains without some",
    ),
    Suite(
        "tensorlayer", "tensorlayer==1.11.1", ("tests",),
        bare=(SLIM,),
        needs=("requests", "progressbar2", "scikit-learn", "scikit-image", "tqdm", "wrapt",
               "imageio", "lxml", "matplotlib", "networkx", "simplejpeg"),
        left_out={
            "tests/test_documentation.py": "builds the documentation",
            "tests/test_pydocstyle.py": "checks its own style",
            "tests/test_yapf_format.py": "checks its own format",
            "tests/test_mnist_simple.py": "downloads data",
            "tests/test_models.py": "downloads data",
        },
    ),
    Suite(
        "trfl", "trfl==1.1.0", ("trfl",),
        needs=("decorator", "cloudpickle>=3", "dm-tree", *KERAS), bare=(PROBABILITY,),
    ),
    Suite("t3f", "t3f==1.1.0", ("t3f",), needs=KERAS),
    Suite(
        "graph_nets", "graph_nets==1.0.5", ("graph_nets",), from_source=True,
        needs=("networkx==2.6.3", "semantic_version", "contextlib2", "cloudpickle>=3", "decorator",
               "dm-tree", *KERAS),
        bare=(SONNET, PROBABILITY),
    ),
    Suite(
        "sonnet", SONNET, ("test_sonnet.py",), program=True,
        needs=("semantic_version", "contextlib2", "cloudpickle>=3", "decorator", "dm-tree", *KERAS),
        bare=(PROBABILITY,),
    ),
    Suite(
        "tensorflow-privacy", "tensorflow-privacy==0.1.0", ("privacy",),
        needs=("absl-py", "parameterized", "mpmath", "mock", *KERAS), bare=(ESTIMATOR,),
        left_out={
            "privacy/bolt_on": "asks for TensorFlow 2",
            "privacy/analysis/privacy_ledger_test.py": EAGER,
            "privacy/dp_query/quantile_adaptive_clip_sum_query_test.py": EAGER,
            "privacy/optimizers/dp_optimizer_eager_test.py": EAGER,
        },
    ),
    Suite(
        "mesh-tensorflow", "mesh-tensorflow==0.1.9", ("mesh_tensorflow",),
        needs=("absl-py", "gin-config==0.2.1", "ortools", "future", *KERAS), bare=(ESTIMATOR,),
        left_out={"mesh_tensorflow/transformer/utils_test.py": "asks for tensorflow-datasets"},
    ),
    Suite(
        "gpflow", "gpflow==1.5.1", ("tests",), from_source=True,
        needs=("multipledispatch", "pytest-mock", "tabulate", "decorator", "cloudpickle>=3",
               "dm-tree", "pandas<3", *KERAS),
        bare=(PROBABILITY,),
    ),
    Suite("keras-self-attention", ATTENTION, ("tests",), from_source=True, needs=KERAS),
    Suite("keras-transformer", TRANSFORMER, ("tests",), from_source=True,
          needs=("keras-layer-normalization==0.14.0", "keras-embed-sim==0.7.0",
                 "keras-pos-embd==0.11.0", "keras-position-wise-feed-forward==0.6.0", *KERAS),
          bare=(ATTENTION, HEADS)),
    Suite(
        "tensorflow-gan", "tensorflow-gan==2.0.0", ("tensorflow_gan",),
        needs=("absl-py", "six", "decorator", "cloudpickle>=3", "dm-tree", "mock", *KERAS),
        bare=(HUB, PROBABILITY, ESTIMATOR),
        left_out={
            "tensorflow_gan/examples": "asks for tensorflow-datasets",
            "tensorflow_gan/python/tpu": "TPUs",
        },
    ),
    Suite(
        "object_detection", "tf-object-detection==0.0.3",
        tuple(
            f"object_detection/{folder}"
            for folder in ("anchor_generators", "box_coders", "core", "matchers", "utils")
        ),
        apart=True,  # it has top-level packages such as `datasets`
        needs=("matplotlib", "pandas<3", "six", "lxml", *KERAS), bare=(SLIM, ESTIMATOR),
        left_out={
            "object_detection/builders": "its tests give str for bytes, as Python 2 allowed",
            "object_detection/dataset_tools": "asks for pycocotools",
            "object_detection/meta_architectures": WHOLE,
            "object_detection/metrics": "asks for pycocotools",
            "object_detection/models": WHOLE,
            "object_detection/predictors": WHOLE,
        },
    ),
    # tf_keras itself is apart: the others' tf.keras is Keras 2.2.
    Suite(
        "tf.keras", "tf_keras==2.15.0", ("test_tf_keras_libraries.py",), apart=True, program=True,
        needs=("attrs", "pandas<3", "requests", "wrapt", "scikit-image", *KERAS),
        bare=("deepctr==0.7.5", "neural-structured-learning==1.0.1",
              "tensorflow-model-optimization==0.2.1", "efficientnet==1.0.0",
              "image-classifiers==1.0.0", "segmentation-models==1.0.1"),
    ),
    Suite(
        "tf-agents", "tf-agents==0.3.0",
        tuple(
            f"tf_agents/{folder}"
            for folder in (
                "distributions", "environments", "metrics", "networks", "policies",
                "replay_buffers", "specs", "trajectories", "utils",
            )
        ),
        apart=True, beside=("tensorflow-probability==0.8.0", "tf_keras==2.15.0"),
        needs=("absl-py", "gin-config==0.2.1", "six", "mock", "decorator", "cloudpickle>=3",
               "dm-tree", "attrs", "requests", "wrapt", "gast==0.2.2", *KERAS),
        bare=("gym==0.17.3", "pyglet==1.5.27"),
        left_out={
            "tf_agents/agents": "minutes each",
            "tf_agents/bandits": "minutes each",
            "tf_agents/drivers": "minutes each",
            "tf_agents/environments/examples": "asks for more simulators",
        },
    ),
    Suite(
        "tensorflow-constrained-optimization", "tensorflow-constrained-optimization==0.2",
        ("tensorflow_constrained_optimization",),
        needs=("absl-py", "parameterized", "six", *KERAS),
    ),
    Suite(
        "tensornetwork", "tensornetwork==0.2.0",
        tuple(f"tensornetwork/{folder}" for folder in ("backends", "contractors", "tests")),
        plugins=("tensornetwork_backend",), needs=("opt_einsum", "graphviz", "matplotlib", *KERAS),
        left_out={
            **dict.fromkeys(
                (
                    "tensornetwork/backends/backend_test.py", "tensornetwork/backends/jax",
                    "tensornetwork/backends/pytorch",
                ),
                "asks for PyTorch or JAX",
            ),
            **dict.fromkeys(
                (
                    "tensornetwork/contractors/cost_calculators_test.py",
                    "tensornetwork/contractors/greedy_contractor_test.py",
                    "tensornetwork/contractors/naive_contractor_test.py",
                    "tensornetwork/contractors/opt_einsum_paths/path_contractors_test.py",
                    "tensornetwork/contractors/stochastic_contractor_test.py",
                    "tensornetwork/tests/network_components_test.py",
                    "tensornetwork/tests/network_test.py",
                ),
                "of a version before: `TensorNetwork` is no longer in it",
            ),
        },
    ),
    Suite("keras-rl", "keras-rl==0.4.2", ("tests",), from_source=True, needs=KERAS,
          bare=("gym==0.17.3", "pyglet==1.5.27")),
    Suite("tensorflow-hub", HUB, ("test_hub.py",), program=True, needs=KERAS),
    Suite("kfac", "kfac==0.2.0", ("test_kfac.py",), program=True,
          needs=("decorator", "cloudpickle>=3", "dm-tree", *KERAS), bare=(PROBABILITY,)),
    Suite("OpenNMT-tf", "OpenNMT-tf==1.25.3", ("test_opennmt.py",), program=True,
          needs=("absl-py", "six", *KERAS), bare=(ESTIMATOR,)),
    Suite(
        "stable-baselines", "stable-baselines==2.10.2", ("test_stable_baselines.py",),
        program=True,
        needs=("pandas<3", "matplotlib", "opencv-python-headless<4.12", "joblib", "cloudpickle>=3",
               "pyglet<2"),
        bare=("gym==0.17.3",),  # it asks for a cloudpickle that Python 3.11 cannot load
    ),
)  # fmt: skip
