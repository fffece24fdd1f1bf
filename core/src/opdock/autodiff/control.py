"""The gradient of an If: an If over the gradients of its branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opdock import dtypes
from opdock.autodiff.flow import dense, is_source, returned, total_shape_of, zeros
from opdock.autodiff.gradients import gradients
from opdock.autodiff.recording import BackwardGraph, Recording, branch_recordings, shared_captures
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.gradient_scope import within_call
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
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
    wanted = {
        j: _Parts([f[j] for f in found]) for j in range(count - 1)
        if any(f[j] is not None for f in found)
    }  # fmt: skip
    for graph, recording, grad in zip(graphs, branch_recordings(op), found, strict=True):
        with graph.as_default():
            graph.outputs = [
                returned(t)
                for j, parts in wanted.items()
                for t in parts.of(grad[j], recording.body.inputs[j])
            ]
    result: list[Any] = [None] * len(op.inputs)
    if not wanted:
        return result
    captures = shared_captures(graphs)
    stateful = any(g.stateful for g in graphs)
    outputs = iter(get("If" if stateful else "StatelessIf")(
        op.inputs[0], captures, Tout=[t.dtype.base_dtype for t in graphs[0].outputs],
        then_branch=graphs[0], else_branch=graphs[1],
        output_shapes=[
            _widest(a.raw_shape, b.raw_shape)
            for a, b in zip(graphs[0].outputs, graphs[1].outputs, strict=True)
        ],
        name="gradient",
    ))  # fmt: skip
    for j, parts in wanted.items():
        result[1 + j] = parts.joined(outputs, op.inputs[1 + j])
    return result


class _Parts:
    """How the branches return the gradient of one argument: as slices, if it is that in all."""

    def __init__(self, grads: list[Any]) -> None:
        given = [g for g in grads if g is not None]
        self._like = given[0]
        self._sliced = all(
            isinstance(g, IndexedSlices)
            and g.dense_shape is not None
            and g.indices.dtype is self._like.indices.dtype
            for g in given
        )

    def of(self, grad: Any, parameter: Tensor) -> list[Tensor]:
        """The results of one branch, in its graph."""
        if not self._sliced:
            return [zeros(parameter, self._like.dtype) if grad is None else dense(grad)]
        if grad is not None:
            return [grad.values, grad.indices]
        shape = total_shape_of(parameter, dtypes.int32)
        row = get("StridedSlice")(shape, [1], [0], [1], end_mask=1)
        none = get("ConcatV2")([convert_to_tensor([0]), row], 0)
        values, indices = self._like.values.dtype, self._like.indices.dtype
        return [
            get("Fill")(none, convert_to_tensor(0, values)),
            get("Fill")([0], convert_to_tensor(0, indices)),
        ]

    def joined(self, results: Iterator[Tensor], argument: Tensor) -> Any:
        """The gradient, from the results of the conditional."""
        first = next(results)
        if not self._sliced:
            return first
        kind = self._like.dense_shape.dtype.base_dtype
        return IndexedSlices(first, next(results), total_shape_of(argument, kind))


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
            name=within_call(),
        )
        for j, grad in zip(sources, found, strict=True):
            out[j] = grad
    return out
