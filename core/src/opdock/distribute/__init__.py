"""`tf.distribute`: a program's model on several devices; each name loads when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

# Module -> the public names that it gives to tf.distribute.
_WHERE: Final[dict[str, str]] = {
    "opdock.distribute.strategy": "InputContext InputReplicationMode Strategy",
    "opdock.distribute.extended": "StrategyExtended",
    "opdock.distribute.mirrored": "MirroredStrategy",
    "opdock.distribute.one_device": "OneDeviceStrategy",
    "opdock.distribute.cross_device_ops": (
        "CrossDeviceOps HierarchicalCopyAllReduce NcclAllReduce ReductionToOneDevice"
    ),
    "opdock.distribute.replica": "ReplicaContext",
    "opdock.distribute.reductions": "ReduceOp",
    "opdock.distribute.modes": "has_strategy in_cross_replica_context",
    "opdock.distribute.context": (
        "experimental_set_strategy get_loss_reduction get_replica_context get_strategy"
    ),
    "opdock.train.server_lib": "Server",
    "opdock.distribute.cluster_resolver": "cluster_resolver",
    "opdock.distribute.experimental": "experimental",
}
_MODULES: Final = {name: module for module, names in _WHERE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = _value(import_module(module), name)
    return value


def _value(module: Any, name: str) -> Any:
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
