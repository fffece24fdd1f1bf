"""The gradient of a While: a While that takes the turns in reverse.

The gradient of what a turn computes is a variable of it. What every turn only reads, such as a
weight, collects its gradient: a sum, or for slices a list of all that the turns contribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opdock import dtypes
from opdock.autodiff.aggregate import add_up
from opdock.autodiff.flow import (
    dense,
    is_source,
    may_flow,
    returned,
    start_zeros,
    total_shape,
    total_shape_of,
    zeros,
)
from opdock.autodiff.gradients import gradients
from opdock.autodiff.recording import (
    BackwardGraph,
    LoopRecording,
    loop_recording,
    shared_captures,
)
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.gradient_scope import within_call
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.ops import tensor_list, tensor_list_rows
from opdock.ops.support.recorded import plain_scope
from opdock.shapes import Shape

__all__ = ["while_gradient"]


def while_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradients of a While.

    Args:
        op: the forward While.
        *grads: one per output; None where nothing flows back.

    Returns:
        One per input: a tensor, IndexedSlices for what every turn only takes slices of, or None.
    """
    if op.attrs.get("_back_prop") is False:
        return [None] * len(op.inputs)
    body: FuncGraph = op.attrs["body"]
    given = [dense(g) for g in grads]
    flowing = _flowing(body, given)
    recording = loop_recording(op)
    if not flowing:
        return [None] * len(op.inputs)
    found = _Backward(recording, flowing, given).gradients()
    # TF has zeros for variables of the loop on which these results hang in some way, and None for
    # others, and for what is only read.
    hang = _reaching(body, flowing, lambda tensor: True, lambda tensor: tensor.op.inputs)
    for j in hang.difference(found):
        start = op.inputs[j]
        numbers = start.dtype.is_floating or start.dtype.is_complex
        if numbers and body.outputs[j] is not body.inputs[j]:
            found[j] = zeros(start)
    # The recordings are further inputs by now.
    return [found.get(j) for j in range(len(op.inputs))]


class _Backward:
    """A backward loop under construction.

    Args:
        recording: of the forward loop.
        flowing: the forward variables that have a gradient.
        given: the gradients of the forward loop's results, or None.
    """

    def __init__(self, recording: LoopRecording, flowing: list[int], given: list[Any]) -> None:
        self.op, self.body, self.recording = recording.op, recording.body, recording
        self.flowing, self.given = flowing, given
        self.outer = get_default_graph()
        self.graph = BackwardGraph(f"{self.body.func_name}_grad", self.outer, recording)
        self.starts: list[Tensor] = []
        self.ends: list[Tensor] = []
        self.places: dict[int, int] = {}  # forward variable -> the backward one for its gradient
        self.slices: dict[int, IndexedSlices] = {}  # what a turn contributes, where that is listed

    def gradients(self) -> dict[int, Any]:
        """The gradient of each flowing variable."""
        turn = self._variable(convert_to_tensor(0, dtypes.int32))
        computed = [j for j in self.flowing if not self._only_read(j)]
        for j in computed:
            self.places[j] = len(self.starts)
            self._variable(self._start(j), total_shape(self.body.inputs[j]))
        with self.graph.as_default():
            found = gradients(
                [self.body.outputs[j] for j in computed],
                [self.body.inputs[j] for j in self.flowing], grad_ys=self.graph.inputs[1:],
                name=within_call(),
            )  # fmt: skip
            self.ends.append(get("AddV2")(turn, 1))
            parts = dict(zip(self.flowing, found, strict=True))
            for j in computed:
                part = dense(parts.pop(j))
                self.ends.append(zeros(self.body.inputs[j]) if part is None else returned(part))
            for j, part in parts.items():
                if part is not None:
                    self._collect(j, part)
        outputs = self._build()
        return {j: self._total(j, outputs) for j in self.flowing}

    def _collect(self, j: int, part: Any) -> None:
        """Adds what a turn contributes to the gradient of what it only reads."""
        self.places[j] = len(self.starts)
        if isinstance(part, IndexedSlices) and part.dense_shape is not None:
            self.slices[j] = part
            self._list(part.values)
            self._list(part.indices)
            return
        with plain_scope(self.outer):
            start = self._start(j)
        total = self._variable(start, total_shape(self.body.inputs[j]))
        part = dense(part)
        lists = part.dtype.base_dtype is dtypes.variant  # what an inner loop recorded for each turn
        self.ends.append(get("AddN")([total, part]) if lists else get("AddV2")(total, part))

    def _total(self, j: int, outputs: list[Tensor]) -> Any:
        """The gradient of a variable, from the results of the backward loop."""
        at, part, given = self.places.get(j), self.slices.get(j), self.given[j]
        if at is None:
            return given
        if part is None:
            return outputs[at]
        variable = self.op.inputs[j]
        assert part.dense_shape is not None
        shape = total_shape_of(variable, part.dense_shape.dtype.base_dtype)
        slices = IndexedSlices(
            tensor_list_rows.concat(outputs[at], part.values.dtype, _rows_of(shape, part.values)),
            tensor_list_rows.concat(outputs[at + 1], part.indices.dtype, convert_to_tensor([-1])),
            shape,
        )
        return slices if given is None else add_up(variable, [given, slices], None)

    def _only_read(self, j: int) -> bool:
        """Whether every turn passes a variable on: then its gradient only collects."""
        parameter = self.body.inputs[j]
        if parameter.dtype.base_dtype is dtypes.resource:
            return True
        return self.recording.invariant(parameter) is not None

    def _start(self, j: int) -> Tensor:
        given: Tensor | None = self.given[j]
        return start_zeros(self.op, j, self.body) if given is None else given

    def _variable(self, start: Tensor, shape: Shape = ()) -> Tensor:
        """One more variable of the backward loop: its parameter."""
        self.starts.append(start)
        return self.graph.add_variable(start.dtype, shape)

    def _list(self, element: Tensor) -> None:
        """A variable that collects a value of each turn."""
        with plain_scope(self.outer):
            start = tensor_list.empty(element)
        self.ends.append(tensor_list.push(self._variable(start), element))

    def _build(self) -> list[Tensor]:
        op, graph = self.op, self.graph
        condition = FuncGraph(f"{self.body.func_name}_grad_cond", self.outer)
        with condition.as_default():
            parameters = [
                condition.add_input(t.dtype, t.raw_shape) for t in graph.inputs[: len(self.starts)]
            ]
            condition.outputs = [get("Less")(parameters[0], self.recording.turns)]
        captures = shared_captures([condition, graph])
        graph.outputs = [*self.ends, *(graph.rests.get(t, t) for _, t in graph.captures)]
        return list(
            get("While" if graph.stateful else "StatelessWhile")(
                [*self.starts, *captures], cond=condition, body=graph,
                output_shapes=[t.raw_shape for t in graph.inputs],
                parallel_iterations=op.attrs.get("parallel_iterations", 10), name="gradient",
            )
        )  # fmt: skip


def _rows_of(shape: Tensor, rows: Tensor) -> Tensor:
    """The shape of any number of rows of a tensor, for lists that may turn out empty."""
    known, kind = rows.raw_shape, shape.dtype.base_dtype
    if known is not None and None not in known[1:]:
        return convert_to_tensor([-1, *known[1:]], kind)
    tail = get("StridedSlice")(shape, [1], [0], [1], end_mask=1)
    joined: Tensor = get("ConcatV2")([convert_to_tensor([-1], kind), tail], 0)
    return joined


def _flowing(body: FuncGraph, grads: Sequence[Any]) -> list[int]:
    """The loop variables through which gradients flow in some turn."""

    def inputs(tensor: Tensor) -> Iterable[Tensor]:
        if not tensor.op.spec.is_differentiable:
            return ()
        return [t for t in tensor.op.inputs if may_flow(t.dtype)]

    given = [j for j, g in enumerate(grads) if g is not None]
    return sorted(_reaching(body, given, lambda t: is_source(t, body), inputs))


def _reaching(
    body: FuncGraph, ends: Iterable[int], counts: Callable[[Tensor], bool],
    inputs: Callable[[Tensor], Iterable[Tensor]],
) -> set[int]:  # fmt: skip
    """The loop variables from which a way leads to some variables' results, in any turn.

    Back from these results through the body, again from the parameters found, until there are no
    more.

    Args:
        body: of the loop.
        ends: the variables.
        counts: whether a parameter may be on the way.
        inputs: where a way leads from a tensor.
    """
    seen: set[Tensor] = set()
    places = {t: j for j, t in enumerate(body.inputs)}
    found = set(ends)
    stack = [body.outputs[j] for j in found]
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        stack.extend(inputs(tensor))
        j = places.get(tensor)
        if j is not None and j not in found and counts(tensor):
            found.add(j)
            stack.append(body.outputs[j])
    return found
