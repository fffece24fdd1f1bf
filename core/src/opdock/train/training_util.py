"""The global step: how many updates a model has had."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables import initializers, variable_scope
from opdock.graph.variables.flavour import VariableAggregation
from opdock.graph.variables.variable import Variable
from opdock.ops import state

GLOBAL_STEP_READ_KEY: Final = "global_step_read_op_cache"
"""The collection of the one tensor from which hooks read the global step."""


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
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
        )  # fmt: skip


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph, made when missing."""
    graph = graph or get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """TypeError unless it is a variable or tensor with one integer.

    Args:
        global_step_tensor: the variable.
    """
    if not isinstance(global_step_tensor, Variable | Tensor):
        raise TypeError(
            f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.'
        )
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(
            f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}'
        )
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step in a session.

    Args:
        sess: the session.
        global_step_tensor: the variable.
    """
    # Programs of TensorFlow 1's years have variables of one element for it, too.
    return int(np.asarray((sess or get_default_session()).run(global_step_tensor)).item())


def _get_global_step_read(graph: Graph | None = None) -> Any:
    """The tensor that hooks share to read the global step, or None.

    Raises:
        RuntimeError: the graph has several.
    """
    found = (graph or get_default_graph()).get_collection(GLOBAL_STEP_READ_KEY)
    if len(found) > 1:
        raise RuntimeError(
            f"There are multiple items in collection {GLOBAL_STEP_READ_KEY}. There should be only "
            "one."
        )
    return found[0] if found else None


def _get_or_create_global_step_read(graph: Graph | None = None) -> Any:
    """The tensor that hooks share to read the global step; None without a global step."""
    graph = graph or get_default_graph()
    found = _get_global_step_read(graph)
    if found is not None:
        return found
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default(), name_scope(None), name_scope(f"{step.op.name}/"):
        # A model may be built under the control of this tensor, its initializers included.
        value = step.initialized_value() if isinstance(step, Variable) else step
        # The sum is a copy: an update in the same step does not change what was read.
        read = value + 0
        graph.add_to_collection(GLOBAL_STEP_READ_KEY, read)
    if isinstance(step, Variable):
        _read_before_updates(step, read)
    return read


def _read_before_updates(step: Any, read: Tensor) -> None:
    """Lets updates that are in the graph wait for the read, as they would in a graph made later.

    Hooks take what they read for the step before the one that runs. Without an edge, what comes
    first is what was made first.
    """
    holder = step.handle if hasattr(step, "handle") else step._ref()
    for op in holder.consumers():
        if op.type.startswith("Assign") and op is not step.initializer:
            op._add_control_input(read.op)


def _increment_global_step(increment: Any, graph: Graph | None = None) -> Any:
    """Adds to the global step, after the hooks have read it; ValueError without one."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError(
            "Global step tensor should be created by tf.train.get_or_create_global_step before "
            "calling increment."
        )
    read = _get_or_create_global_step_read(graph)
    with (
        graph.as_default(),
        name_scope(None),
        name_scope(f"{step.op.name}/"),
        control_dependencies([read]),
    ):
        return state.assign_add(step, increment)
