"""Stand-ins for what libraries import at their top for parts that opdock does not have.

TensorFlow's own libraries import TPUs, Keras' optimizers and boosted trees with everything else,
whether a program uses them or not. In the modules listed here a name that is not there is a class
that can be named, passed on, subclassed and asked for with `isinstance`; calling it raises.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from opdock import errors
from opdock.codes import coded

_EAGER: Final = (
    "how TensorFlow runs operations eagerly is its own matter: opdock has tf.GradientTape"
)
_STRATEGIES: Final = "tf.distribute has the strategies of TensorFlow 1.15, and no more"

# Internal modules and names, with all below them, and why they are not there.
MODULES: Final[dict[str, str]] = {
    "compat.v2.keras": "Keras is a library: pip install 'opdock[keras]' brings tf.keras",
    "compat.v2.__internal__.distribute": _STRATEGIES,
    "compat.v2.__internal__.function": _EAGER,
    "compat.v2.__internal__.saved_model": "SavedModels of functions are TensorFlow 2's",
    "compat.v2.__internal__.test": "tests of TensorFlow 2's own",
    "compat.v2.distribute": _STRATEGIES,
    "compat.v2.experimental.dtensor": "distributed tensors are TensorFlow 2's",
    "compat.v2.experimental.extension_type": "extension types are TensorFlow 2's",
    "compat.v2.profiler": "tf.profiler has the profiler of sessions",
    "compat.v2.random.Algorithm": _EAGER,
    "compat.v2.random.Generator": _EAGER,
    "compat.v2.raw_ops.CudnnRNN": "recurrences are built of plain ops",
    "compat.v2.raw_ops.CudnnRNNV2": "recurrences are built of plain ops",
    "compat.v2.raw_ops.CudnnRNNV3": "recurrences are built of plain ops",
    **{
        f"compat.v2.summary.trace_{name}": (
            "what functions run is seen by `opdock record` and `opdock view`; summary.graph writes "
            "graphs"
        )
        for name in ("export", "off", "on")
    },
    "compat.v2.tpu": "there are no TPUs here",
    "compat.v2.types": _EAGER,
    "compat.v2.optimizers": "of TensorFlow 2: tf.train has the optimizers of 1",
    "contrib.tpu.proto": "there are no TPUs here",
    "contrib.tpu.python": "there are no TPUs here",
    "core.protobuf.tpu": "there are no TPUs here",
    "keras.optimizers.Optimizer": "Keras is a library: pip install 'opdock[keras]' brings tf.keras",
    "python.autograph": "tf.autograph and its internal `impl.api` are there, TF's transformers not",
    **{
        f"python.data.ops.{name}_op": "datasets have no classes of their own by kind"
        for name in (
            "from_generator",
            "from_sparse_tensor_slices",
            "from_tensor_slices",
            "from_tensors",
            "range",
        )
    },
    "python.compiler.tensorrt": "TensorRT is another runtime",
    "python.data.util.structure.NoneTensorSpec": "elements of datasets are never None",
    "python.debug": "tfdbg is out of scope: Session.explain and `opdock record` look into steps",
    "python.distribute": _STRATEGIES,
    "python.eager": _EAGER,
    "python.keras": "Keras is a library: pip install 'opdock[keras]' brings what runs on opdock",
    "python.ops.control_flow_ops.ControlFlowContext": "loops and branches are functions here",
    "python.ops.control_flow_ops.XLAControlFlowContext": "there are no TPUs here",
    "python.ops.batch_ops": "batching across sessions is for servers",
    "python.pywrap_tfe": _EAGER,
    "python.tools.print_selective_registration_header": (
        "kernels are not linked into one binary: there is nothing to leave out of it"
    ),
    "python.tpu": "there are no TPUs here",
}


class _Absent(type):
    """The class of stand-ins: each is a class, and so is what is found in it."""

    _opdock_name: str
    _opdock_reason: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        told = f"tensorflow.{cls._opdock_name} is not there: {cls._opdock_reason}"
        raise errors.UnimplementedError(None, None, coded("OPD-NAME-002", told))

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _make(f"{cls._opdock_name}.{name}", cls._opdock_reason)


def _make(name: str, reason: str) -> Any:
    facts = {"_opdock_name": name, "_opdock_reason": reason}
    return _Absent(name.rpartition(".")[2], (), facts)


def stand_in(path: str, name: str) -> Any:
    """A stand-in for a name of an internal module, or None where one should be missed at once."""
    found = reason(f"{path}.{name}")
    return None if found is None else _make(f"{path}.{name}", found)


def why(module: str) -> str:
    """Why `python -m` has nothing to run in a module of TensorFlow's."""
    found = reason(module.partition(".")[2])
    return found or "its names are there to be imported"


def reason(path: str) -> str | None:
    """Why a name, or what it is in, is not there; None if nothing is said of it."""
    head = path
    while head and head not in MODULES:
        head = head.rpartition(".")[0]
    return MODULES.get(head)
