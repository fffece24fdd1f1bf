"""Gradients of functional control flow: a branch of gradients, a loop that runs backwards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.autodiff.gradients import gradients
from opdock.autodiff.recording import (
    BackwardGraph,
    Recording,
    branch_recordings,
    loop_recording,
)
from opdock.dtypes import DType
from opdock.graph.convert import convert_to_tensor
from opdock.graph.func_graph import FuncGraph
from opdock.graph.graph import get_default_graph
from opdock.graph.operation import Operation, Tensor
from opdock.graph.registry import get
from opdock.ops.control import _share_captures, _widest
from opdock.shapes import Shape

# Ops that read a variable through its handle; any other use of a resource has no gradient.
_READS: Final = ("ReadVariableOp", "ResourceGather")


# ---------------------------------------------------------------- If
def if_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradients of an If: an If whose branches differentiate the forward branches.

    Args:
        op: the forward If.
        *grads: one per output; None where nothing flows back.
    """
    count = len(op.inputs)
    dense = [_dense(g) for g in grads]
    graphs, found = [], []
    for recording in branch_recordings(op):
        graph = BackwardGraph(f"{recording.body.func_name}_grad", get_default_graph(), recording)
        graphs.append(graph)
        found.append(_branch(graph, recording, dense))
    wanted = [j for j in range(count - 1) if any(f[j] is not None for f in found)]
    for graph, recording, grad in zip(graphs, branch_recordings(op), found, strict=True):
        with graph.as_default():
            parameters = recording.body.inputs
            graph.outputs = [
                _returned(grad[j]) if grad[j] is not None else _zeros(parameters[j], recording)
                for j in wanted
            ]
    result: list[Any] = [None] * len(op.inputs)
    if not wanted:
        return result
    captures = _share_captures(list(graphs))
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
    sources = [j for j, t in enumerate(body.inputs) if _is_source(t, body)]
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
            out[j] = _dense(grad)
    return out


# ---------------------------------------------------------------- While
def while_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradients of a While: a While that takes the turns in reverse.

    Args:
        op: the forward While.
        *grads: one per output; None where nothing flows back.
    """
    if op.attrs.get("_back_prop") is False:
        return [None] * len(op.inputs)
    body: FuncGraph = op.attrs["body"]
    flowing = _flowing(body, [_dense(g) for g in grads])
    recording = loop_recording(op)
    result: list[Any] = [None] * len(op.inputs)
    if not flowing:
        return result
    start = [
        _dense(grads[j]) if grads[j] is not None else _start_zeros(op, j, body) for j in flowing
    ]
    outer = get_default_graph()
    graph = BackwardGraph(f"{body.func_name}_grad", outer, recording)
    with graph.as_default():
        turn = graph.add_input(dtypes.int32, (), "turn")
        totals = [
            graph.add_input(g.dtype, _total_shape(body.inputs[j]))
            for j, g in zip(flowing, start, strict=True)
        ]
        graph.outputs = [get("AddV2")(turn, 1), *_turn(recording, flowing, totals)]
    condition = FuncGraph(f"{body.func_name}_grad_cond", outer)
    with condition.as_default():
        parameters = [
            condition.add_input(t.dtype, t.raw_shape) for t in graph.inputs[: 1 + len(start)]
        ]
        condition.outputs = [get("Less")(parameters[0], recording.turns)]
    captures = _share_captures([condition, graph])
    graph.outputs += [graph.rests.get(inner, inner) for _, inner in graph.captures]
    inputs = [convert_to_tensor(0, dtypes.int32), *start, *captures]
    outputs = get("While" if graph.stateful else "StatelessWhile")(
        inputs, cond=condition, body=graph,
        output_shapes=[t.raw_shape for t in graph.inputs],
        parallel_iterations=op.attrs.get("parallel_iterations", 10), name="gradient",
    )  # fmt: skip
    result += [None] * (len(op.inputs) - len(result))
    for position, j in enumerate(flowing):
        result[j] = outputs[1 + position]
    return result


def _turn(recording: Recording, flowing: list[int], totals: list[Tensor]) -> list[Tensor]:
    """One turn backwards: the gradients of the flowing parameters from those of the results."""
    body = recording.body
    # A variable's handle is passed on, not computed: its gradient only collects.
    through = {j for j in flowing if body.inputs[j].dtype.base_dtype is dtypes.resource}
    ys = [(body.outputs[j], g) for j, g in zip(flowing, totals, strict=True) if j not in through]
    found = gradients(
        [y for y, _ in ys], [body.inputs[j] for j in flowing], grad_ys=[g for _, g in ys]
    )
    out = []
    for j, total, grad in zip(flowing, totals, found, strict=True):
        part = _dense(grad)
        if j in through:
            out.append(_returned(total if part is None else get("AddV2")(total, part)))
        elif part is None:
            out.append(_zeros(body.inputs[j], recording))
        else:
            out.append(_returned(part))
    return out


def _flowing(body: FuncGraph, grads: Sequence[Any]) -> list[int]:
    """The loop variables through which gradients flow in some turn.

    From the outputs with a gradient back through the body, again from the parameters found, until
    there are no more.
    """
    flowing = {j for j, g in enumerate(grads) if g is not None}
    while True:
        reached = _ancestors([body.outputs[j] for j in flowing])
        grown = flowing | {
            j for j, t in enumerate(body.inputs) if t in reached and _is_source(t, body)
        }
        if grown == flowing:
            return sorted(flowing)
        flowing = grown


def _ancestors(ends: list[Tensor]) -> set[Tensor]:
    seen: set[Tensor] = set()
    stack = list(ends)
    while stack:
        tensor = stack.pop()
        if tensor in seen or not _may_flow(tensor.dtype):
            continue
        seen.add(tensor)
        if tensor.op.spec.is_differentiable:
            stack.extend(tensor.op.inputs)
    return seen


# ---------------------------------------------------------------- values
def _may_flow(dtype: DType) -> bool:
    base = dtype.base_dtype
    return base.is_floating or base.is_complex or base in (dtypes.resource, dtypes.variant)


def _is_source(tensor: Tensor, body: FuncGraph) -> bool:
    """Whether a parameter has a gradient: numbers, lists, and handles of variables."""
    if tensor.dtype.base_dtype is dtypes.resource:
        return _variable_dtype(tensor) is not None
    return _may_flow(tensor.dtype)


def _variable_dtype(handle: Tensor) -> DType | None:
    """The type of the variable behind a handle, as its readers in the body (and below) say."""
    for consumer in handle.consumers():
        if consumer.type in _READS:
            dtype: DType = consumer.attrs["dtype"]
            return dtype
        for body in consumer.attrs.values():
            if isinstance(body, FuncGraph):
                first = 1 if consumer.type.endswith("If") else 0
                for i, tensor in enumerate(consumer.inputs[first:]):
                    if tensor is handle and i < len(body.inputs):
                        inner = _variable_dtype(body.inputs[i])
                        if inner is not None:
                            return inner
    return None


def _start_zeros(op: Operation, index: int, body: FuncGraph) -> Tensor:
    """The gradient of a loop's result that nobody asked for."""
    parameter = body.inputs[index]
    if parameter.dtype.base_dtype is dtypes.resource:
        return _variable_zeros(op.inputs[index], parameter)
    return _zeros_like(op.outputs[index])


def _zeros(parameter: Tensor, recording: Recording) -> Tensor:
    """The gradient of a parameter that has no influence here."""
    if parameter.dtype.base_dtype is dtypes.resource:
        return _variable_zeros(parameter, parameter)
    return _zeros_like(parameter)


def _zeros_like(tensor: Tensor) -> Tensor:
    base, known = tensor.dtype.base_dtype, tensor.raw_shape
    if base is dtypes.variant:
        return get("EmptyTensorList")(-1, -1, element_dtype=dtypes.float32)  # type: ignore[no-any-return]
    if known is not None and None not in known:
        size = convert_to_tensor(list(known), dtypes.int32)
        return get("Fill")(size, convert_to_tensor(0, base))  # type: ignore[no-any-return]
    return get("ZerosLike")(tensor)  # type: ignore[no-any-return]


def _variable_zeros(handle: Tensor, parameter: Tensor) -> Tensor:
    zero = convert_to_tensor(0, _variable_dtype(parameter))
    return get("Fill")(get("VariableShape")(handle), zero)  # type: ignore[no-any-return]


def _total_shape(parameter: Tensor) -> Shape:
    return None if parameter.dtype.base_dtype is dtypes.resource else parameter.raw_shape


def _returned(tensor: Tensor) -> Tensor:
    """A value that the body makes itself, not a parameter handed back."""
    return get("Identity")(tensor)  # type: ignore[no-any-return]


def _dense(grad: Any) -> Any:
    """A gradient as one tensor: what a body returns must have one type in every branch and turn."""
    if grad is None:
        return None
    with warnings.catch_warnings():
        # Rows of a table of unknown size: nothing that the user could do about it.
        warnings.simplefilter("ignore", UserWarning)
        return convert_to_tensor(grad)


__all__ = ["if_gradient", "while_gradient"]
