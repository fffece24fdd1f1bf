"""MetaGraphDef: a graph with its collections and its saver, written and read back."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Any

from opdock.graph.nodes import registry
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.serial.attr_proto import encode_attr, to_op_def
from opdock.graph.serial.importer import import_graph_def
from opdock.graph.serial.proto_functions import (
    VARIABLE_COLLECTIONS,
    get_collection_proto_type,
    get_from_proto_function,
    get_to_proto_function,
)
from opdock.io import protos
from opdock.io.files import as_path, read_file
from opdock.train.graph_io import write_graph

__all__ = [
    "create_meta_graph_def", "export_scoped_meta_graph", "import_scoped_meta_graph",
    "read_meta_graph_file", "strip_name_scope",
]  # fmt: skip

_log = logging.getLogger("tensorflow")
_TF_VERSION = "1.15.0"
_UNBOUND = "$unbound_inputs_"


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


def _in_scope(name: str, scope: str | None) -> bool:
    return not scope or name.startswith(scope.rstrip("/") + "/")


# ---------------------------------------------------------------- export
def create_meta_graph_def(
    meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
    collection_list: Iterable[str] | None = None, graph: Graph | None = None,
    export_scope: str | None = None, clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> Any:  # fmt: skip
    """Builds a `MetaGraphDef`.

    Args:
        meta_info_def: a `MetaInfoDef` to start from.
        graph_def: the graph; that of `graph` when None.
        saver_def: the saver to record.
        collection_list: names of collections to write, all when None.
        graph: the graph whose collections are written, the default graph when None.
        export_scope: write only what is in this name scope.
        clear_extraneous_savers: leave out the saver nodes that `saver_def` does not name.
        strip_default_attrs: leave out attributes that have their default values.

    Returns:
        The `MetaGraphDef`.

    Raises:
        TypeError: an argument has the wrong type.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph, not {type(graph)}")
    graph = graph or get_default_graph()
    meta = protos.MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.MergeFrom(meta_info_def)
    meta.graph_def.MergeFrom(
        graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    )
    if clear_extraneous_savers and saver_def is not None:
        _clear_other_savers(meta.graph_def, saver_def)
    info = meta.meta_info_def
    if not info.stripped_op_list.op:
        _fill_op_list(meta.graph_def, info.stripped_op_list)
    if strip_default_attrs:
        strip_graph_default_attrs(meta.graph_def)
    info.stripped_default_attrs = strip_default_attrs
    info.tensorflow_version = _TF_VERSION
    info.tensorflow_git_version = "opdock"
    if saver_def is not None:
        meta.saver_def.MergeFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else list(collection_list)
    for key in keys:
        _add_collection(meta, key, graph, export_scope)
    return meta


def _fill_op_list(graph_def: Any, op_list: Any) -> None:
    nodes = [n for f in graph_def.library.function for n in f.node_def]
    functions = {f.signature.name for f in graph_def.library.function}
    used = {n.op for n in [*graph_def.node, *nodes]} - functions
    for name in sorted(used):
        spec = registry.find(name)
        if spec is not None:
            op_list.op.add().CopyFrom(to_op_def(spec))


def strip_graph_default_attrs(graph_def: Any) -> None:
    """Removes the attributes that have their default values, in place."""
    for node in graph_def.node:
        spec = registry.find(node.op)
        if spec is None:
            continue
        for attr in spec.definition.attrs.values():
            if attr.name in node.attr and attr.has_default:
                if node.attr[attr.name] == encode_attr(attr.default, attr.type):
                    del node.attr[attr.name]


def _clear_other_savers(graph_def: Any, saver_def: Any) -> None:
    """Keeps the saver that `saver_def` names; others are recognized by their node types."""
    own = saver_def.filename_tensor_name.partition(":")[0].rpartition("/")[0]
    scopes = {
        n.name.rpartition("/")[0]
        for n in graph_def.node
        if n.op in ("SaveV2", "RestoreV2", "SaveSlices", "MergeV2Checkpoints")
    } - {own, ""}
    kept = [n for n in graph_def.node if n.name.split("/")[0] not in scopes]
    copies = protos.GraphDef(node=kept)
    del graph_def.node[:]
    graph_def.node.extend(copies.node)


def _add_collection(meta: Any, key: str, graph: Graph, export_scope: str | None) -> None:
    items = graph.get_collection(key)
    if not items:
        return
    target = meta.collection_def[key]
    try:
        to_proto = get_to_proto_function(key)
        if to_proto is not None:
            for item in items:
                proto = to_proto(item, export_scope=export_scope)
                if proto is not None:
                    target.bytes_list.value.append(proto.SerializeToString())
            target.bytes_list.SetInParent()
        elif isinstance(items[0], (str, bytes)):
            target.bytes_list.value.extend(i.encode() if isinstance(i, str) else i for i in items)
        elif isinstance(items[0], int):
            target.int64_list.value.extend(items)
        elif isinstance(items[0], float):
            target.float_list.value.extend(items)
        else:
            target.node_list.SetInParent()
            for item in items:
                if _in_scope(item.name, export_scope):
                    target.node_list.value.append(strip_name_scope(item.name, export_scope))
    except Exception as e:
        # A collection may hold anything; the graph is worth writing without it.
        del meta.collection_def[key]
        _log.warning("Issue encountered when serializing %s.\n%s", key, e)


def export_scoped_meta_graph(
    filename: Any = None, graph_def: Any = None, graph: Graph | None = None,
    export_scope: str | None = None, as_text: bool = False,
    unbound_inputs_col_name: str = "unbound_inputs", clear_devices: bool = False,
    saver_def: Any = None, clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False, **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Builds a `MetaGraphDef` of a graph or of one name scope of it, and writes it to a file.

    Args:
        filename: the file, or None to write none.
        graph_def: the graph; that of `graph` when None.
        graph: the graph, the default graph when None.
        export_scope: the name scope to export; its name is taken off.
        as_text: write text instead of binary.
        unbound_inputs_col_name: collection that names the inputs from outside the scope.
        clear_devices: take off the device of every node.
        saver_def: the saver to record.
        clear_extraneous_savers: leave out other savers' nodes.
        strip_default_attrs: leave out attributes that have their default values.
        **kwargs: further arguments of `create_meta_graph_def`.

    Returns:
        The MetaGraphDef, and the variables of the scope by their names inside it.

    Raises:
        ValueError: there are inputs from outside the scope and no collection to name them in.
    """
    graph = graph or get_default_graph()
    full = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    exported = protos.GraphDef()
    exported.versions.CopyFrom(full.versions)
    exported.library.CopyFrom(full.library)
    unbound: set[str] = set()
    for node in full.node:
        if _in_scope(node.name, export_scope):
            copy = exported.node.add()
            copy.CopyFrom(node)
            if export_scope:
                _strip_node(copy, export_scope, unbound)
            if clear_devices:
                copy.device = ""
    if unbound and not unbound_inputs_col_name:
        raise ValueError(f"{sorted(unbound)} are unbound inputs of scope '{export_scope}'")
    variables: dict[str, Any] = {}
    for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        if _in_scope(v.name, export_scope):
            variables[strip_name_scope(v.name, export_scope)] = v
    meta = create_meta_graph_def(
        graph_def=exported, graph=graph, export_scope=export_scope, saver_def=saver_def,
        clear_extraneous_savers=clear_extraneous_savers, strip_default_attrs=strip_default_attrs,
        **kwargs,
    )  # fmt: skip
    if unbound:
        names = sorted(unbound)
        meta.collection_def[unbound_inputs_col_name].bytes_list.value.extend(
            n.encode() for n in names
        )
    if filename:
        directory, name = os.path.split(as_path(filename))
        write_graph(meta, directory, name, as_text=as_text)
    return meta, variables


def _strip_node(node: Any, scope: str, unbound: set[str]) -> None:
    node.name = strip_name_scope(node.name, scope)
    for i, text in enumerate(node.input):
        if _in_scope(text.lstrip("^"), scope):
            node.input[i] = strip_name_scope(text, scope)
        else:
            outside = _UNBOUND + text.lstrip("^")
            unbound.add(text.lstrip("^"))
            node.input[i] = f"^{outside}" if text.startswith("^") else outside
    if "_class" in node.attr:
        groups = node.attr["_class"].list
        groups.s[:] = [
            strip_name_scope(g.decode(), scope).encode()
            for g in groups.s
            if not g.startswith(b"loc:@") or _in_scope(g[5:].decode(), scope)
        ]
        if not groups.s:
            del node.attr["_class"]


# ---------------------------------------------------------------- import
def read_meta_graph_file(filename: Any) -> Any:
    """Reads a MetaGraphDef, binary or text.

    Raises:
        IOError: there is no such file, or it is neither.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    path = as_path(filename)
    if not os.path.isfile(path):
        raise OSError(f"File {path} does not exist.")
    data = read_file(path)
    try:
        return protos.MetaGraphDef.FromString(data)
    except DecodeError:
        pass
    try:
        return text_format.Parse(data.decode("utf-8"), protos.MetaGraphDef())
    except (text_format.ParseError, UnicodeDecodeError) as e:
        raise OSError(f"Cannot parse file {path}: {e}.") from None


def import_scoped_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, graph: Graph | None = None,
    import_scope: str | None = None, input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: list[str] | None = None,
) -> tuple[dict[str, Any], list[Any] | None]:  # fmt: skip
    """Adds a MetaGraphDef's nodes and collections to a graph.

    Args:
        meta_graph_or_file: a `MetaGraphDef` or a file name.
        clear_devices: take off the device of every node.
        graph: the graph, the default graph when None.
        import_scope: prefix of the new names.
        input_map: names in the MetaGraphDef to tensors that take their place.
        unbound_inputs_col_name: collection of the inputs that the map must give.
        restore_collections_predicate: which collections to restore, by name.
        return_elements: names of elements to return.

    Returns:
        The variables by name without the scope, and the requested elements.

    Raises:
        ValueError: an unbound input is not in `input_map`, or the graph is malformed.
        IOError: the file does not exist or cannot be parsed.
    """
    if isinstance(meta_graph_or_file, protos.MetaGraphDef):
        meta = meta_graph_or_file
    else:
        meta = read_meta_graph_file(meta_graph_or_file)
    if unbound_inputs_col_name in meta.collection_def:
        input_map = _bind(meta.collection_def[unbound_inputs_col_name], input_map)
    graph = graph or get_default_graph()
    with graph.as_default():
        definition = protos.GraphDef()
        definition.CopyFrom(meta.graph_def)
        if clear_devices:
            for node in definition.node:
                node.device = ""
        scope = graph.unique_name(import_scope, mark_as_used=False) if import_scope else ""
        elements = import_graph_def(
            definition, input_map=input_map, name=import_scope or "",
            return_elements=return_elements,
            producer_op_list=meta.meta_info_def.stripped_op_list
            if meta.meta_info_def.HasField("stripped_op_list") else None,
        )  # fmt: skip
        made: dict[bytes, Any] = {}
        # The contexts of TF's first control flow end with it: its nodes are functions now.
        skipped = {unbound_inputs_col_name, GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT}
        for key in sorted(meta.collection_def):
            if key not in skipped and restore_collections_predicate(key):
                _restore_collection(graph, key, meta.collection_def[key], scope, made)
    variables = {
        strip_name_scope(v.name, scope): v
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope or None)
    }
    return variables, elements


def _bind(collection: Any, input_map: dict[str, Any] | None) -> dict[str, Any]:
    """Checks the unbound inputs against the map and names them as the nodes do."""
    given = dict(input_map or {})
    missing = []
    for raw in collection.bytes_list.value:
        name = raw.decode()
        if not name:
            continue
        if name in given:
            given[_UNBOUND + name] = given.pop(name)
        elif _UNBOUND + name not in given:
            missing.append(name)
    if missing:
        raise ValueError(
            f"Graph contains unbound inputs: {missing}. Must provide these inputs through"
            " input_map."
        )
    return given


def _restore_collection(
    graph: Graph, key: str, collection: Any, scope: str, made: dict[bytes, Any]
) -> None:
    kind = collection.WhichOneof("kind")
    if kind is None:
        _log.error("Cannot identify data type for collection %s. Skipping.", key)
        return
    from_proto = get_from_proto_function(key)
    if from_proto is not None and kind == "bytes_list":
        proto_type = get_collection_proto_type(key)
        for value in collection.bytes_list.value:
            if key not in VARIABLE_COLLECTIONS:
                item = from_proto(proto_type.FromString(value), import_scope=scope)
            else:
                # One variable in several collections stays one object.
                item = made.get(value)
                if item is None:
                    item = from_proto(proto_type.FromString(value), import_scope=scope)
                    made[value] = item
            graph.add_to_collection(key, item)
        return
    for value in getattr(collection, kind).value:
        if kind == "node_list":
            graph.add_to_collection(key, graph.as_graph_element(prepend_name_scope(value, scope)))
        elif kind == "any_list":
            _log.warning("Collection %s holds messages of unknown types. Skipping.", key)
            return
        else:
            graph.add_to_collection(key, value)
