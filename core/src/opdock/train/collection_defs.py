"""Collections as `CollectionDef`s and back, and names that are relative to a scope."""

from __future__ import annotations

import logging
from collections.abc import Container
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage

from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.contents import NotInGraphError, as_text
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.serial.proto_functions import (
    VARIABLE_COLLECTIONS,
    get_collection_proto_type,
    get_from_proto_function,
    get_to_proto_function,
)
from opdock.io.parsing import parsed

__all__ = [
    "add_collection_def", "in_scope", "prepend_name_scope", "restore_collection",
    "strip_name_scope",
]  # fmt: skip

_log = logging.getLogger("tensorflow")


# ---------------------------------------------------------------- names
def strip_name_scope(name: str, scope: str | None) -> str:
    """A node name without the scope at its start; "^" and "loc:@" marks stay."""
    if not scope:
        return name
    scope = scope.rstrip("/")
    for mark in ("^", "loc:@", ""):
        if name.startswith(f"{mark}{scope}/"):
            return mark + name[len(mark) + len(scope) + 1 :]
    return name


def prepend_name_scope(name: str, scope: str | None) -> str:
    """A node name inside a scope; "^" and "loc:@" marks stay in front."""
    if not scope:
        return name
    scope = scope.rstrip("/")
    for mark in ("^", "loc:@"):
        if name.startswith(mark):
            return f"{mark}{scope}/{name[len(mark) :]}"
    return f"{scope}/{name}"


def in_scope(name: str, scope: str | None) -> bool:
    """Whether a name stands in a scope; every name stands in none."""
    return not scope or name.startswith(scope.rstrip("/") + "/")


# ---------------------------------------------------------------- written
def add_collection_def(
    meta_graph_def: Any, key: Any, graph: Graph | None = None, export_scope: str | None = None,
    exclude_nodes: Container[str] = (), override_contents: list[Any] | None = None,
) -> None:  # fmt: skip
    """Writes a collection into a `MetaGraphDef`.

    What cannot be written is left out with a warning: a collection may hold anything.

    Args:
        meta_graph_def: the `MetaGraphDef`.
        key: the collection's name.
        graph: the graph that has it, the default graph when None.
        export_scope: write only what is in this name scope, without its name.
        exclude_nodes: names of nodes that are not exported.
        override_contents: what to write in place of the collection's items.

    Raises:
        TypeError: `graph` is no graph.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph, not {type(graph)}")
    if not isinstance(key, (str, bytes)):
        _log.warning(
            "Only collections with string type keys will be serialized. This key has %s", type(key)
        )
        return
    items = override_contents or (graph or get_default_graph()).get_collection(key)
    items = [item for item in items if _is_exported(item, export_scope, exclude_nodes)]
    if not items:
        return
    try:
        graph = graph or get_default_graph()
        _fill(meta_graph_def.collection_def[key], as_text(key), items, graph, export_scope)
    except Exception as e:
        del meta_graph_def.collection_def[key]
        _log.warning(
            "Issue encountered when serializing %s.\nType is unsupported, or the types of the items"
            " don't match field type in CollectionDef. Note this is a warning and probably safe to"
            " ignore.\n%s",
            key, e,
        )  # fmt: skip


def _is_exported(item: Any, scope: str | None, excluded: Container[str]) -> bool:
    name = item if isinstance(item, str) else getattr(item, "name", None)
    if not isinstance(name, str):
        return True
    # A variable is excluded with its node.
    return name not in excluded and (isinstance(item, str) or in_scope(name, scope))


def _fill(target: Any, key: str, items: list[Any], graph: Graph, scope: str | None) -> None:
    to_proto = get_to_proto_function(key)
    first = items[0]
    if to_proto is not None:
        target.bytes_list.SetInParent()
        for item in items:
            proto = to_proto(item, export_scope=scope)
            if proto is not None:
                target.bytes_list.value.append(proto.SerializeToString())
    elif isinstance(first, (str, bytes)):
        target.bytes_list.value.extend(i.encode() if isinstance(i, str) else i for i in items)
    elif isinstance(first, int):
        target.int64_list.value.extend(items)
    elif isinstance(first, float):
        target.float_list.value.extend(items)
    elif isinstance(first, AnyMessage):
        target.any_list.value.extend(items)
    else:
        for item in items:
            graph.as_graph_element(item.name)  # a variable in parts has a name, but no node
            target.node_list.value.append(strip_name_scope(item.name, scope))


# ---------------------------------------------------------------- read
def restore_collection(
    graph: Graph, key: str, collection: Any, scope: str, made: dict[bytes, Any],
    tells_trainable: bool,
) -> None:  # fmt: skip
    """Adds the items of a `CollectionDef` to a graph.

    Args:
        graph: the graph, whose nodes exist already.
        key: the collection's name.
        collection: the `CollectionDef`.
        scope: the scope into which the nodes were imported.
        made: variables that were read before, by what they were read from.
        tells_trainable: whether messages of variables say if these are trainable. Where they do
            not, those are that the collection of trainable variables has; it is read first.

    Raises:
        ValueError: a collection of variables, or of what else is written as messages, has numbers.
    """
    kind = collection.WhichOneof("kind")
    if kind is None:
        _log.error("Cannot identify data type for collection %s. Skipping.", key)
        return
    from_proto = get_from_proto_function(key)
    if from_proto is not None and kind == "bytes_list":
        proto_type = get_collection_proto_type(key)
        where = f"an item of collection '{key}'"
        for value in collection.bytes_list.value:
            if key not in VARIABLE_COLLECTIONS:
                item = from_proto(parsed(proto_type, value, where), import_scope=scope)
            else:
                # One variable in several collections stays one object.
                item = made.get(value)
                if item is None:
                    proto = parsed(proto_type, value, where)
                    if not tells_trainable:
                        proto.trainable = key == GraphKeys.TRAINABLE_VARIABLES
                    item = made[value] = from_proto(proto, import_scope=scope)
            graph.add_to_collection(key, item)
        return
    if from_proto is not None and kind != "node_list":
        raise ValueError(
            f"Collection '{key}' has {kind} where its items are serialized messages, in bytes_list"
        )
    for value in getattr(collection, kind).value:
        try:
            item = (
                graph.as_graph_element(prepend_name_scope(value, scope))
                if kind == "node_list"
                else value
            )
        except NotInGraphError as e:
            # TensorFlow writes the names of variables in parts, which it cannot read.
            _log.warning("Left out of collection %s: %s", key, e)
        else:
            graph.add_to_collection(key, item)
