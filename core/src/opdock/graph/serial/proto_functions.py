"""How the items of a collection are written into a MetaGraphDef and read back."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opdock.graph.nodes.collections import GraphKeys

__all__ = [
    "get_collection_proto_type", "get_from_proto_function", "get_to_proto_function",
    "register_proto_function", "to_proto", "variable_from_proto",
]  # fmt: skip


@dataclass(frozen=True)
class _Functions:
    proto_type: Any
    to_proto: Callable[..., Any] | None
    from_proto: Callable[..., Any] | None


_registered: dict[str, _Functions] = {}

VARIABLE_COLLECTIONS = frozenset({
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.METRIC_VARIABLES,
    GraphKeys.GLOBAL_STEP,
})  # fmt: skip
"""Collections whose items are variables, stored as VariableDef."""
_VARIABLE: Final = "VariableDef", "opdock.graph.variables.variable", "Variable"
_OWN: Final[Mapping[str, tuple[str, str, str]]] = {
    **dict.fromkeys(VARIABLE_COLLECTIONS, _VARIABLE),
    GraphKeys.SAVERS: ("SaverDef", "opdock.train.saver", "Saver"),
    GraphKeys.QUEUE_RUNNERS: ("QueueRunnerDef", "opdock.train.queue_runner", "QueueRunner"),
}
"""Collections that need no registration: the message, and where the class of the items is."""


def register_proto_function(
    collection_name: str,
    proto_type: Any = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Registers how a collection's items become protobufs and come back.

    Args:
        collection_name: the collection.
        proto_type: the message class.
        to_proto: `f(item, export_scope=None)`, None for an item outside the scope.
        from_proto: `f(proto, import_scope=None)`.

    Raises:
        TypeError: a function is not callable.
    """
    for what, function in (("to_proto", to_proto), ("from_proto", from_proto)):
        if function is not None and not callable(function):
            raise TypeError(f"{what} must be callable.")
    _registered[collection_name] = _Functions(proto_type, to_proto, from_proto)


def _find(collection_name: str) -> _Functions | None:
    found = _registered.get(collection_name)
    if found is None and collection_name in _OWN:
        from opdock.io import protos

        message, module, kind = _OWN[collection_name]

        def from_proto(proto: Any, import_scope: str | None = None) -> Any:
            # By name: training stands above this layer.
            items = getattr(importlib.import_module(module), kind)
            return items.from_proto(proto, import_scope=import_scope)

        found = _Functions(getattr(protos, message), to_proto, from_proto)
        _registered[collection_name] = found
    return found


def get_collection_proto_type(collection_name: str) -> Any:
    """The message class of a collection's items, or None."""
    found = _find(collection_name)
    return None if found is None else found.proto_type


def get_to_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """The function that writes a collection's items, or None."""
    found = _find(collection_name)
    return None if found is None else found.to_proto


def get_from_proto_function(collection_name: str) -> Callable[..., Any] | None:
    """The function that reads a collection's items, or None."""
    found = _find(collection_name)
    return None if found is None else found.from_proto


def to_proto(item: Any, export_scope: str | None = None) -> Any:
    """A variable, saver or queue runner as a message; None if it is outside the scope."""
    return item.to_proto(export_scope=export_scope)


def variable_from_proto(proto: Any, import_scope: str | None = None) -> Any:
    """The variable that a VariableDef describes."""
    from opdock.graph.variables.variable import Variable

    return Variable.from_proto(proto, import_scope=import_scope)
