"""The gradient of an If: an If over the gradients of its branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.autodiff.flow import dense, is_source, returned, zeros
from opdock.autodiff.gradients import gradients
from opdock.autodiff.recording import (
    BackwardGraph,
    Recording,
    branch_recordings,
    shared_captures,
)
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.registry import get
from opdock.ops.control import _widest

__all__ = ["if_gradient"]


def if_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradients of an If: an If whose branches differentiate the forward branches.

    Args:
        op: the forward If.
        *grads: one per output; None where nothing flows back.
    """
    count = len(op.inputs)
    given = [dense(g) for g in grads]
    graphs, found = [], []
    for recording in branch_recordings(op):
        graph = BackwardGraph(f"{recording.body.func_name}_grad", get_default_graph(), recording)
        graphs.append(graph)
        found.append(_branch(graph, recording, given))
    wanted = [j for j in range(count - 1) if any(f[j] is not None for f in found)]
    for graph, recording, grad in zip(graphs, branch_recordings(op), found, strict=True):
        with graph.as_default():
            parameters = recording.body.inputs
            graph.outputs = [
                returned(grad[j]) if grad[j] is not None else zeros(parameters[j])
                for j in wanted
            ]
    result: list[Any] = [None] * len(op.inputs)
    if not wanted:
        return result
    captures = shared_captures(graphs)
    stateful = any(g.stateful for g in graphs)
    outputs = get("If" if stateful else "StatelessIf")(
        op.inputs[0], captures, Tout=[t.dtype.base_dtype for t in graphs[0].outputs],
        then_branch=graphs[0], else_branch=graphs[1],
        output_shapes=[
            _widest(a.raw_shape, b.raw_shape)
            for a, b in zip(graphs[0].outputs, graphs[1].outputs, strict=True)
        ],
        name="gradient",
    )  # fmt: skip
    for j, grad in zip(wanted, outputs, strict=True):
        result[1 + j] = grad
    return result


def _branch(graph: BackwardGraph, recording: Recording, grads: Sequence[Any]) -> list[Any]:
    """The gradient of each parameter of a branch, in the backward graph."""
    body = recording.body
    flowing = [k for k, g in enumerate(grads) if g is not None]
    sources = [j for j, t in enumerate(body.inputs) if is_source(t, body)]
    out: list[Any] = [None] * len(body.inputs)
    if not flowing or not sources:
        return out
    with graph.as_default():
        found = gradients(
            [body.outputs[k] for k in flowing],
            [body.inputs[j] for j in sources],
            grad_ys=[grads[k] for k in flowing],
        )
        for j, grad in zip(sources, found, strict=True):
            out[j] = dense(grad)
    return out
