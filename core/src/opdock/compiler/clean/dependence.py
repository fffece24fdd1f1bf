"""Dependence: which arguments the results of a function, of a loop and of a branch depend on.

A set of arguments is an integer with a bit for each, so that one walk over a function finds the
sets of all its values at once. What is found is kept with the function until it changes: a loop
within loops is looked at once, however deep it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opdock.graph.nodes.traits import Control
from opdock.late import record

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph
    from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["Flow", "branch_flow", "flow_of", "indices_of", "loop_flow"]


@record(frozen=True, slots=True)
class Flow:
    """What a call needs.

    Attributes:
        always: the arguments without which it cannot run at all.
        results: for each result, the arguments on which it depends.
    """

    always: int
    results: Sequence[int]

    def needs(self, used: Iterable[int]) -> int:
        """The arguments that a call needs for some of its results."""
        found = self.always
        for index in used:
            found |= self.results[index]
        return found


def indices_of(mask: int) -> Iterator[int]:
    """The arguments in a set, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def flow_of(function: FuncGraph) -> Flow:
    """The flow of a function."""
    state = function._version, [*function.inputs], [*function.outputs]
    kept = function.__dict__.get("_flow")
    if kept is None or kept[0] != state:
        kept = function.__dict__["_flow"] = state, _Walk(function).flow()
    flow: Flow = kept[1]
    return flow


def loop_flow(cond: FuncGraph, body: FuncGraph) -> Flow:
    """The flow of a loop: a result needs its start, and what turns may bring into it."""
    test, turn = flow_of(cond), flow_of(body)
    always = _closed(test.needs([0]) | turn.always, turn.results)
    return Flow(always, _Closures(turn.results))


def branch_flow(branches: Sequence[FuncGraph]) -> Flow:
    """The flow of a conditional, without its predicate."""
    flows = [flow_of(b) for b in branches]
    always = 0
    for flow in flows:
        always |= flow.always
    results = [0] * len(flows[0].results)
    for flow in flows:
        results = [a | b for a, b in zip(results, flow.results, strict=True)]
    return Flow(always, results)


class _Closures(Sequence[int]):
    """For each variable of a loop those on which it depends after any number of turns."""

    def __init__(self, turn: Sequence[int]) -> None:
        self._turn = turn

    def __len__(self) -> int:
        return len(self._turn)

    def __getitem__(self, index: Any) -> Any:
        return _closed(1 << index, self._turn)


def _closed(mask: int, turn: Sequence[int]) -> int:
    fresh = mask
    while fresh:
        found = 0
        for index in indices_of(fresh):
            found |= turn[index]
        fresh = found & ~mask
        mask |= fresh
    return mask


class _Walk:
    """The sets of the values of one function."""

    def __init__(self, function: FuncGraph) -> None:
        self._function = function
        self._parameters = {t: 1 << i for i, t in enumerate(function.inputs)}
        # Of most operations one set for all results, of control flow a set for each.
        self._masks: dict[Operation, int | list[int]] = {}

    def flow(self) -> Flow:
        function = self._function
        self._visit([t._op for t in function.outputs] + function.targets)
        always = 0
        for op in function.targets:
            always |= self._waited(op)
        return Flow(always, [self._of(t) for t in function.outputs])

    def _visit(self, roots: list[Operation]) -> None:
        """Finds the sets of operations, each after all that it needs."""
        stack = roots
        open_ops: set[Operation] = set()
        while stack:
            op = stack[-1]
            if op in self._masks:
                stack.pop()
            elif op in open_ops:
                self._masks[op] = self._found(op)
                stack.pop()
            else:
                open_ops.add(op)
                before = [t._op for t in op._inputs if t not in self._parameters]
                before += op._control_inputs
                stack += [o for o in before if o not in self._masks]

    def _found(self, op: Operation) -> int | list[int]:
        given = [self._of(t) for t in op._inputs]
        waited = 0
        for other in op._control_inputs:
            waited |= self._waited(other)
        control = op.spec.traits.control
        if control is Control.LOOP:
            flow = loop_flow(op.attrs["cond"], op.attrs["body"])
        elif control is Control.COND:
            flow = branch_flow([op.attrs["then_branch"], op.attrs["else_branch"]])
            waited |= given.pop(0)
        else:
            for mask in given:
                waited |= mask
            return waited
        return [
            waited | _joined(given, flow.always | flow.results[i]) for i in range(len(op.outputs))
        ] or waited | _joined(given, flow.always)

    def _of(self, tensor: Tensor) -> int:
        known = self._parameters.get(tensor)
        if known is not None:
            return known
        mask = self._masks.get(tensor._op, 0)
        return mask if isinstance(mask, int) else mask[tensor._value_index]

    def _waited(self, op: Operation) -> int:
        """Who waits for control flow waits for all of it, and nobody waits for an argument."""
        mask = self._masks.get(op, 0)
        if isinstance(mask, int):
            return mask
        total = 0
        for part in mask:
            total |= part
        return total


def _joined(given: list[int], arguments: int) -> int:
    total = 0
    for index in indices_of(arguments):
        total |= given[index]
    return total
