"""`tf.saved_model.utils`: tensors as `TensorInfo` and back, and where a SavedModel keeps what."""

from __future__ import annotations

import os
from typing import Any

from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.graph.nodes.composite import CompositeTensor, SparseTensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.graph.nodes.typespec import type_spec_from_value
from opdock.io import protos
from opdock.io.files import as_path, make_directories
from opdock.saved_model import constants
from opdock.saved_model.nested_structure_coder import StructureCoder
from opdock.shapes import TensorShape
from opdock.train.meta_graph import prepend_name_scope
from opdock.util import nest

__all__ = [
    "build_tensor_info", "build_tensor_info_from_op", "get_element_from_tensor_info",
    "get_tensor_from_tensor_info", "rename_shared",
]  # fmt: skip


def build_tensor_info(tensor: Any) -> Any:
    """Describes a tensor.

    Args:
        tensor: a `Tensor`, a variable, a `SparseTensor` or another composite tensor.

    Returns:
        A `TensorInfo` with its name (of a sparse tensor, those of its parts), dtype and shape; of
        another composite tensor, its spec and what describes its parts.

    Raises:
        NotEncodableError: it is a composite tensor whose spec TF does not know.
        RuntimeError: operations run at once, so tensors have no names.
    """
    if executing_eagerly():
        raise RuntimeError(
            "build_tensor_info is not supported in Eager mode: a tensor is known by its name in a "
            "graph."
        )
    info = protos.TensorInfo()
    if isinstance(tensor, CompositeTensor) and not isinstance(tensor, SparseTensor):
        spec = StructureCoder().encode_structure(type_spec_from_value(tensor))
        info.composite_tensor.type_spec.CopyFrom(spec.type_spec_value)
        parts = nest.flatten(tensor, expand_composites=True)
        info.composite_tensor.components.extend(build_tensor_info(part) for part in parts)
        return info
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    info.dtype = dtypes.as_dtype(tensor.dtype).as_datatype_enum
    info.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
    return info


def build_tensor_info_from_op(op: Any) -> Any:
    """Describes an operation: a `TensorInfo` of its name, of no dtype and of unknown shape."""
    return protos.TensorInfo(
        dtype=protos.DataType.DT_INVALID, tensor_shape=TensorShape(None).as_proto(), name=op.name
    )


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Any:
    """The tensor that a `TensorInfo` describes.

    Args:
        tensor_info: a `TensorInfo`.
        graph: the graph that has it, the default graph when None.
        import_scope: the scope into which the tensor was imported.

    Returns:
        A `Tensor`, a `SparseTensor` or another composite tensor.

    Raises:
        KeyError: the graph has no such tensor.
        ValueError: the description is malformed.
    """
    graph = graph or get_default_graph()

    def tensor(name: str) -> Any:
        return graph.get_tensor_by_name(prepend_name_scope(name, import_scope))

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return tensor(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            tensor(parts.indices_tensor_name), tensor(parts.values_tensor_name),
            tensor(parts.dense_shape_tensor_name),
        )  # fmt: skip
    if encoding == "composite_tensor":
        described = tensor_info.composite_tensor
        spec = StructureCoder().decode_proto(
            protos.StructuredValue(type_spec_value=described.type_spec)
        )
        components = [
            get_tensor_from_tensor_info(part, graph, import_scope) for part in described.components
        ]
        return spec._from_components(components)
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}")


def get_element_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Any:
    """The tensor or operation that a `TensorInfo` names; KeyError when the graph has neither."""
    graph = graph or get_default_graph()
    return graph.as_graph_element(prepend_name_scope(tensor_info.name, import_scope))


# ---------------------------------------------------------------- places
def get_variables_dir(export_dir: Any) -> str:
    """The directory of a SavedModel's variables."""
    return os.path.join(as_path(export_dir), constants.VARIABLES_DIRECTORY)


def get_variables_path(export_dir: Any) -> str:
    """The prefix of the checkpoint that holds a SavedModel's variables."""
    return os.path.join(get_variables_dir(export_dir), constants.VARIABLES_FILENAME)


def get_assets_dir(export_dir: Any) -> str:
    """The directory of a SavedModel's assets."""
    return os.path.join(as_path(export_dir), constants.ASSETS_DIRECTORY)


def get_or_create_variables_dir(export_dir: Any) -> str:
    """`get_variables_dir`, which exists afterwards."""
    return _made(get_variables_dir(export_dir))


def get_or_create_assets_dir(export_dir: Any) -> str:
    """`get_assets_dir`, which exists afterwards."""
    return _made(get_assets_dir(export_dir))


def _made(directory: str) -> str:
    make_directories(directory)
    return directory


def rename_shared(meta_graph_def: Any, suffix: str) -> None:
    """Changes what resources are shared by: a model that is loaded twice has them twice.

    Those of the graph itself that are known by their nodes' names get these as names, so that they
    stay the same ones in functions that are made of parts of the graph.

    Args:
        meta_graph_def: a `MetaGraphDef`; it is changed.
        suffix: what the names get.
    """
    graph = meta_graph_def.graph_def
    for node in graph.node:
        spec = registry.find(node.op)
        if spec is not None and "shared_name" in spec.definition.attrs:
            node.attr["shared_name"].s = node.attr["shared_name"].s or node.name.encode()
    for nodes in (graph.node, *(f.node_def for f in graph.library.function)):
        for node in nodes:
            if "shared_name" in node.attr and node.attr["shared_name"].s:
                node.attr["shared_name"].s += suffix.encode()
