"""MetaGraphDef: a graph with its collections and its saver, written and read back."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Container, Iterable
from typing import Any

from opdock.graph.nodes import registry
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.serial.attr_proto import encode_attr, to_op_def
from opdock.graph.serial.import_compat import fill_in_defaults
from opdock.graph.serial.importer import import_graph_def
from opdock.graph.serial.proto_functions import get_from_proto_function
from opdock.io import filesystems, protos
from opdock.io.files import as_path, read_file
from opdock.train.collection_defs import (
    add_collection_def,
    in_scope,
    prepend_name_scope,
    restore_collection,
    strip_name_scope,
)
from opdock.train.graph_io import write_graph
from opdock.version import GIT_VERSION

__all__ = [
    "add_collection_def", "copy_scoped_meta_graph", "create_meta_graph_def",
    "export_scoped_meta_graph", "import_scoped_meta_graph",
    "import_scoped_meta_graph_with_return_elements", "ops_used_by_graph_def", "prepend_name_scope",
    "read_meta_graph_file", "strip_name_scope", "stripped_op_list_for_graph",
]  # fmt: skip

_TF_VERSION = "1.15.0"
_UNBOUND = "$unbound_inputs_"


# ---------------------------------------------------------------- export
def create_meta_graph_def(
    meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
    collection_list: Iterable[str] | None = None, graph: Graph | None = None,
    export_scope: str | None = None, exclude_nodes: Container[str] | None = None,
    clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
) -> Any:  # fmt: skip
    """Builds a `MetaGraphDef`.

    Args:
        meta_info_def: a `MetaInfoDef` to start from.
        graph_def: the graph; that of `graph` when None.
        saver_def: the saver to record.
        collection_list: names of collections to write, all when None.
        graph: the graph whose collections are written, the default graph when None.
        export_scope: write only what is in this name scope.
        exclude_nodes: names of nodes that are not in the graph, for the collections.
        clear_extraneous_savers: leave other savers out of the collection of savers.
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
    info = meta.meta_info_def
    if not info.stripped_op_list.op:
        info.stripped_op_list.CopyFrom(_known_ops(meta.graph_def))
    if strip_default_attrs:
        strip_graph_default_attrs(meta.graph_def)
    info.stripped_default_attrs = strip_default_attrs
    info.tensorflow_version = _TF_VERSION
    info.tensorflow_git_version = GIT_VERSION
    if saver_def is not None:
        meta.saver_def.MergeFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else list(collection_list)
    for key in keys:
        only = None
        if clear_extraneous_savers and saver_def is not None and key == GraphKeys.SAVERS:
            from_proto = get_from_proto_function(key)
            only = None if from_proto is None else [from_proto(saver_def)]
        add_collection_def(meta, key, graph, export_scope, exclude_nodes or (), only)
    return meta


def ops_used_by_graph_def(graph_def: Any) -> list[str]:
    """The op types in a `GraphDef` and in the bodies of its functions, without the functions."""
    functions = {f.signature.name: f for f in graph_def.library.function}
    used: set[str] = set()
    waiting = [node.op for node in graph_def.node]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += [n.op for n in functions[name].node_def] if name in functions else []
    return sorted(used - functions.keys())


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The `OpList` of the ops in a `GraphDef`.

    Raises:
        ValueError: an op is not registered.
    """
    inner = ("_Arg", "_Retval", "_ListToArray", "_ArrayToList")
    for name in ops_used_by_graph_def(graph_def):
        if registry.find(name) is None and name not in inner:
            raise ValueError(f"Op {name} is used by the graph, but is not registered")
    return _known_ops(graph_def)


def _known_ops(graph_def: Any) -> Any:
    found = (registry.find(name) for name in ops_used_by_graph_def(graph_def))
    return protos.OpList(op=[to_op_def(spec) for spec in found if spec is not None])


def strip_graph_default_attrs(graph_def: Any) -> None:
    """Removes the attributes that have their default values, in place; in functions as well."""
    functions = (function.node_def for function in graph_def.library.function)
    for node in itertools.chain(graph_def.node, *functions):
        spec = registry.find(node.op)
        if spec is None:
            continue
        for attr in spec.definition.attrs.values():
            if attr.name in node.attr and attr.has_default:
                if node.attr[attr.name] == encode_attr(attr.default, attr.type):
                    del node.attr[attr.name]


def _extraneous_saver_nodes(graph_def: Any, saver_def: Any) -> set[str]:
    """The nodes in the scopes of savers other than `saver_def`; their op types give them away."""
    own = set()
    if saver_def is not None:
        own = {_scope_of(saver_def.save_tensor_name), _scope_of(saver_def.restore_op_name)}
    kinds = ("SaveV2", "RestoreV2", "SaveSlices", "RestoreSlice", "Save", "Restore")
    scopes = {_scope_of(n.name) for n in graph_def.node if n.op in kinds} - own - {""}
    starts = tuple(f"{scope}/" for scope in scopes)
    return {n.name for n in graph_def.node if n.name.startswith(starts)} if starts else set()


def _scope_of(name: str) -> str:
    return name.partition(":")[0].lstrip("^").rpartition("/")[0]


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
        unbound_inputs_col_name: collection that names the inputs from outside the scope, if any.
        clear_devices: take off the device of every node.
        saver_def: the saver to record.
        clear_extraneous_savers: leave out other savers' nodes.
        strip_default_attrs: leave out attributes that have their default values.
        **kwargs: further arguments of `create_meta_graph_def`.

    Returns:
        The MetaGraphDef, and the variables of the scope by their names inside it.
    """
    graph = graph or get_default_graph()
    full = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    exported = protos.GraphDef()
    exported.versions.CopyFrom(full.versions)
    exported.library.CopyFrom(full.library)
    excluded = _extraneous_saver_nodes(full, saver_def) if clear_extraneous_savers else set()
    unbound: set[str] = set()
    for node in full.node:
        if in_scope(node.name, export_scope) and node.name not in excluded:
            copy = exported.node.add()
            copy.CopyFrom(node)
            if export_scope:
                _strip_node(copy, export_scope, unbound)
            if clear_devices:
                copy.device = ""
    if unbound_inputs_col_name and export_scope:
        graph.clear_collection(unbound_inputs_col_name)
        for name in sorted(unbound):
            graph.add_to_collection(unbound_inputs_col_name, name)
    variables = {
        strip_name_scope(v.name, export_scope): v
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if in_scope(v.name, export_scope) and v.op.name not in excluded
    }
    meta = create_meta_graph_def(
        graph_def=exported, graph=graph, export_scope=export_scope, exclude_nodes=excluded,
        saver_def=saver_def, clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs, **kwargs,
    )  # fmt: skip
    if filename:
        path = as_path(filename)
        write_graph(meta, filesystems.parent(path), os.path.basename(path), as_text=as_text)
    return meta, variables


def _strip_node(node: Any, scope: str, unbound: set[str]) -> None:
    node.name = strip_name_scope(node.name, scope)
    for i, text in enumerate(node.input):
        if in_scope(text.lstrip("^"), scope):
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
            if not g.startswith(b"loc:@") or in_scope(g[5:].decode(), scope)
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
    if not filesystems.isfile(path):
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
) -> dict[str, Any]:  # fmt: skip
    """`import_scoped_meta_graph_with_return_elements` without the elements."""
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, graph, import_scope, input_map, unbound_inputs_col_name,
        restore_collections_predicate,
    )[0]  # fmt: skip


def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Any]:
    """Copies what is in a name scope to another scope, of the same graph or of another.

    Args:
        from_scope: what to copy.
        to_scope: prefix of the copies' names.
        from_graph: the graph to copy from, the default graph when None.
        to_graph: the graph to copy to, the default graph when None.

    Returns:
        The copied variables by their names without the scope.

    Raises:
        ValueError: graph and scope are the same.
    """
    from_graph, to_graph = from_graph or get_default_graph(), to_graph or get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError(
            "'from_scope' and 'to_scope' need to be different when performing copy in the same"
            " graph."
        )
    meta, _ = export_scoped_meta_graph(export_scope=from_scope, graph=from_graph)
    return import_scoped_meta_graph(meta, graph=to_graph, import_scope=to_scope)


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any, clear_devices: bool = False, graph: Graph | None = None,
    import_scope: str | None = None, input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: list[str] | None = None,
) -> tuple[dict[str, Any], list[Any] | None]:  # fmt: skip
    """Adds a MetaGraphDef's nodes and collections to a graph.

    Args:
        meta_graph_or_file: a `MetaGraphDef`, whose nodes get the attributes that were left out
            with their default values, or a file name.
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
    if unbound_inputs_col_name and unbound_inputs_col_name in meta.collection_def:
        input_map = _bind(meta.collection_def[unbound_inputs_col_name], input_map)
    graph = graph or get_default_graph()
    with graph.as_default():
        fill_in_defaults(meta.graph_def)
        definition = protos.GraphDef()
        definition.CopyFrom(meta.graph_def)
        if clear_devices:
            for node in definition.node:
                node.device = ""
        # Without a scope of its own, the import stands in the one that is open.
        if import_scope:
            scope = name = graph.unique_name(import_scope, mark_as_used=False)
        else:
            scope = graph.get_name_scope()
            name = f"{scope}/" if scope else ""
        elements = import_graph_def(
            definition, input_map=input_map, name=import_scope or name,
            return_elements=return_elements,
            producer_op_list=meta.meta_info_def.stripped_op_list
            if meta.meta_info_def.HasField("stripped_op_list") else None,
        )  # fmt: skip
        made: dict[bytes, Any] = {}
        # The contexts of TF's first control flow end with it: its nodes are functions now.
        skipped = {unbound_inputs_col_name, GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT}
        told = _tells_trainable(meta.meta_info_def.tensorflow_version)
        trainable = GraphKeys.TRAINABLE_VARIABLES
        for key in sorted(meta.collection_def, key=lambda key: (key != trainable, key)):
            if key not in skipped and restore_collections_predicate(key):
                restore_collection(graph, key, meta.collection_def[key], scope, made, told)
    variables = {
        strip_name_scope(v.name, scope): v
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope or None)
    }
    return variables, elements


def _tells_trainable(version: str) -> bool:
    """Whether a version of TensorFlow wrote with each variable if it is trainable: from 1.9 on."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= (1, 9)


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
