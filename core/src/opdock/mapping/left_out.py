"""What of TensorFlow 1.15's public interface is not meant to come, and why."""

from __future__ import annotations

from typing import Final

__all__ = ["CONTRIB", "place", "reason"]

# Packages of tf.contrib that are not there, and what serves instead, if anything.
CONTRIB: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("bigtable", "cloud", "hadoop", "ignite", "kafka", "kinesis"),
        "a client of one storage or stream; tf.data reads files, and generators of Python",
    ),
    **dict.fromkeys(("gdr", "mpi", "mpi_collectives", "rpc", "verbs"), "one network's transport"),
    **dict.fromkeys(("hvx", "remote_fused_graph", "tensorrt"), "another runtime"),
    **dict.fromkeys(
        ("boosted_trees", "decision_trees"), "tf.estimator.BoostedTreesClassifier grows trees"
    ),
    "all_reduce": "tensorflow.python.distribute.all_reduce has its functions",
    "bayesflow": "tf.contrib.distributions' library has Monte Carlo methods",
    "constrained_optimization": "became the library tensorflow_constrained_optimization",
    "ffmpeg": "tf.audio.decode_wav reads sound",
    "fused_conv": "opdock fuses convolutions by itself",
    "grid_rnn": "no program was found that uses it",
    "kfac": "became the library kfac",
    "labeled_tensor": "no program was found that uses it",
    "libsvm": "tf.py_func can parse its lines",
    "nearest_neighbor": "no program was found that uses it",
    "rate": "no program was found that uses it",
    "recurrent": "tf.nn.dynamic_rnn",
    "session_bundle": "was deprecated for tf.saved_model",
    "specs": "Python's text to be run",
    "stat_summarizer": "tf.profiler",
    "tensor_forest.hybrid": "no program was found that uses it",
    "timeseries": "no program was found that uses it",
}

# Module, or one name -> the reason why it is not meant to come.
_OUT: Final[dict[str, str]] = {
    **{f"contrib.{package}": why for package, why in CONTRIB.items()},
    "config": "settings of TF 2's runtime",
    "distribute.experimental.TPUStrategy": "needs a TPU's own runtime",
    "experimental": "settings of TF 2's runtime",
    "lite": "a converter for another runtime",
    "tpu": "needs a TPU's own runtime",
    "xla": "compilers are plugins; see docs/reference/plugin.md",
    "layers.experimental": "the ways of Keras' layers for tf.layers; tf.keras.layers has them",
    "train.do_quantize_training_on_graphdef": "tf.contrib.quantize, which took its place",
    **dict.fromkeys(
        (
            "keras.experimental.LinearCosineDecay",
            "keras.experimental.NoisyLinearCosineDecay",
            "keras.experimental.terminate_keras_multiprocessing_pools",
        ),
        "tf_keras has dropped it",
    ),
    "keras.mixed_precision": "models of TF 2's time",
    "errors.raise_exception_on_not_ok_status": "statuses of TF's C interface",
    "pywrap_tensorflow": "TF's C interface",
    "user_ops": "an op of TF's that is a joke",
}


def place(path: str) -> str | None:
    """The module or name left out that a public path is or is in; None where there is none."""
    parts = path.split(".")
    places = (".".join(parts[: i + 1]) for i in range(len(parts)))
    return next((place for place in places if place in _OUT), None)


def reason(path: str) -> str | None:
    """Why a public path, or a module that it is in, is left out; None where it is not."""
    found = place(path)
    return None if found is None else _OUT[found]
