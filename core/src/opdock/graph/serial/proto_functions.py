"""How the items of a collection are written into a MetaGraphDef and read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opdock.graph.nodes.collections import GraphKeys

__all__ = [
    "get_collection_proto_type", "get_from_proto_function", "get_to_proto_function",
    "register_proto_function", "variable_from_proto", "variable_to_proto",
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
    if found is None and collection_name in VARIABLE_COLLECTIONS:
        from opdock.io import protos

        found = _Functions(protos.VariableDef, variable_to_proto, variable_from_proto)
        _registered[collection_name] = found
    if found is None and collection_name == GraphKeys.SAVERS:
        from opdock.io import protos

        found = _Functions(protos.SaverDef, _saver_to_proto, _saver_from_proto)
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


def variable_to_proto(variable: Any, export_scope: str | None = None) -> Any:
    """A variable as a VariableDef; None if it is outside the scope."""
    return variable.to_proto(export_scope=export_scope)


def variable_from_proto(proto: Any, import_scope: str | None = None) -> Any:
    """The variable that a VariableDef describes."""
    from opdock.graph.variables.variable import Variable

    return Variable.from_proto(proto, import_scope=import_scope)


def _saver_to_proto(saver: Any, export_scope: str | None = None) -> Any:
    return saver.to_proto(export_scope=export_scope)


def _saver_from_proto(proto: Any, import_scope: str | None = None) -> Any:
    import importlib

    # By name: training stands above this layer.
    saver = importlib.import_module("opdock.train.saver")
    return saver.Saver.from_proto(proto, import_scope=import_scope)
