"""The global step: how many updates a model has had."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.variables import initializers, variable_scope


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph, or None.

    Raises:
        TypeError: what is in its place is no integer scalar.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) == 1:
        step = found[0]
    elif not found:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    else:
        return None
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Any:
    """Makes the global step of a graph; ValueError when it has one."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return variable_scope.get_variable(
            GraphKeys.GLOBAL_STEP, shape=[], dtype=dtypes.int64,
            initializer=initializers.zeros_initializer(), trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )  # fmt: skip


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph, made when missing."""
    graph = graph or get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """TypeError unless the tensor is an integer scalar."""
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(
            f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}'
        )
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step in a session."""
    return int((sess or get_default_session()).run(global_step_tensor))
