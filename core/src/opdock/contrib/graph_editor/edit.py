"""Cuts parts of a graph out, and puts them together."""

from __future__ import annotations

from typing import Any

from opdock.contrib.graph_editor import reroute, select, subgraph, util
from opdock.contrib.graph_editor.subgraph import SubGraphView
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.ops.identity import placeholder

__all__ = [
    "bypass",
    "connect",
    "detach",
    "detach_control_inputs",
    "detach_control_outputs",
    "detach_inputs",
    "detach_outputs",
]


def _graph_of(view: SubGraphView) -> Graph:
    if view.graph is None:
        raise ValueError("The subgraph is empty.")
    return view.graph


def detach_control_inputs(sgv: Any) -> None:
    """Lets the operations of a view no longer wait for others outside.

    Args:
        sgv: the view, or what `make_view` makes one of.
    """
    view = subgraph.make_view(sgv)
    for op in view.ops:
        reroute.remove_control_inputs(op, [c for c in op.control_inputs if c not in view.ops])


def detach_control_outputs(sgv: Any, control_outputs: util.ControlOutputs) -> None:
    """Lets operations outside a view no longer wait for those inside.

    Args:
        sgv: the view, or what `make_view` makes one of.
        control_outputs: of its graph.

    Raises:
        TypeError: `control_outputs` is no `ControlOutputs`.
    """
    if not isinstance(control_outputs, util.ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_outputs)}")
    control_outputs.update()
    view = subgraph.make_view(sgv)
    for op in view.ops:
        for waiting in control_outputs.get(op):
            if waiting not in view.ops:
                reroute.remove_control_inputs(waiting, op)


def detach_inputs(sgv: Any, control_inputs: bool = False) -> tuple[SubGraphView, list[Tensor]]:
    """Gives a view placeholders for inputs.

    Args:
        sgv: the view, or what `make_view` makes one of; it is brought up to date.
        control_inputs: whether its operations no longer wait for others either.

    Returns:
        The view, and the placeholders.

    Raises:
        ValueError: the view is empty.
    """
    view = subgraph.make_view(sgv)
    with _graph_of(view).as_default():
        placeholders = [placeholder(t.dtype, name=util.placeholder_name(t)) for t in view.inputs]
    reroute.swap_inputs(view, placeholders)
    if control_inputs:
        detach_control_inputs(view)
    return view, placeholders


def detach_outputs(sgv: Any, control_outputs: Any = None) -> tuple[SubGraphView, list[Tensor]]:
    """Gives the users of a view placeholders in the place of its outputs.

    Args:
        sgv: the view, or what `make_view` makes one of.
        control_outputs: the `ControlOutputs` of its graph, if none outside is to wait either.

    Returns:
        A view with the outputs that were used, and the placeholders.

    Raises:
        ValueError: the view is empty.
    """
    whole = subgraph.make_view(sgv)
    view = whole.remap_outputs([i for i, t in enumerate(whole.outputs) if t.consumers()])
    users = SubGraphView(view.consumers())
    users = users.remap_inputs([i for i, t in enumerate(users.inputs) if t in view.outputs])
    with _graph_of(whole).as_default():
        placeholders = [util.make_placeholder_from_tensor(t) for t in users.inputs]
    reroute.swap_outputs(view, placeholders)
    if control_outputs is not None:
        detach_control_outputs(view, control_outputs)
    return view, placeholders


def detach(
    sgv: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[Any, list[Tensor], list[Tensor]]:
    """Cuts a view out: placeholders take the place of all that goes in and comes out.

    Args:
        sgv: the view, or what `make_view` makes one of; it is brought up to date.
        control_inputs: whether control inputs are cut too,
        control_outputs: and control outputs, a `ControlOutputs`, or
        control_ios: both, likewise.

    Returns:
        The view, its placeholders, and those of its users.
    """
    before, after = select.check_cios(control_inputs, control_outputs, control_ios)
    _, inputs = detach_inputs(sgv, before)
    _, outputs = detach_outputs(sgv, after)
    return sgv, inputs, outputs


def connect(
    sgv0: Any, sgv1: Any, disconnect_first: bool = False
) -> tuple[SubGraphView, SubGraphView]:
    """Gives a view the outputs of another one for inputs.

    Args:
        sgv0: the view whose outputs they are, or what `make_view` makes one of.
        sgv1: the view that takes them; it is brought up to date.
        disconnect_first: whether those that took the outputs get placeholders.

    Returns:
        The views.
    """
    first, second = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(first, second)
    if disconnect_first:
        detach_outputs(first)
    reroute.reroute_inputs(SubGraphView(passthrough_ts=first.outputs), second)
    return first, second


def bypass(sgv: Any) -> tuple[SubGraphView, list[Tensor]]:
    """Lets the users of a view take what goes into it; it takes placeholders.

    Args:
        sgv: the view, or what `make_view` makes one of; it is brought up to date.

    Returns:
        The view, and the placeholders.
    """
    view = subgraph.make_view(sgv)
    inputs = list(view.inputs)
    view, placeholders = detach_inputs(view)
    reroute.reroute_ts(inputs, view.outputs)
    return view, placeholders
