"""TF's place of graphs, tensors, scopes and collections."""

from opdock.graph.nodes.collections import (
    GraphKeys,
    add_to_collection,
    add_to_collections,
    get_collection,
    get_collection_ref,
)
from opdock.graph.nodes.composite import IndexedSlices, convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import (
    convert_n_to_tensor,
    convert_to_tensor,
    register_tensor_conversion_function,
)
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.graph import Graph, get_default_graph, reset_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import RegisterGradient
from opdock.graph.nodes.registry import not_differentiable as NotDifferentiable
from opdock.graph.nodes.scopes import (
    colocate_with,
    container,
    control_dependencies,
    device,
    name_scope,
    op_scope,
)

NoGradient = NotDifferentiable

__all__ = [
    "Graph", "GraphKeys", "IndexedSlices", "NoGradient", "NotDifferentiable", "Operation",
    "RegisterGradient", "Tensor", "add_to_collection", "add_to_collections", "colocate_with",
    "container", "control_dependencies", "convert_n_to_tensor", "convert_to_tensor",
    "convert_to_tensor_or_indexed_slices", "device", "get_collection", "get_collection_ref",
    "get_default_graph", "get_default_session", "name_scope", "op_scope",
    "register_tensor_conversion_function", "reset_default_graph",
]  # fmt: skip
