"""Which operations of a graph TF 1's first control flow decides about; most programs have none."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.traits import Control, Traits

_DATAFLOW: Final = (Control.SWITCH, Control.TURN)


def switched(roots: Iterable[Operation], fed: Container[Tensor]) -> list[Operation]:
    """The operations that roots need and that first control flow decides about, oldest first."""
    reached: set[Operation] = set()
    found: list[Operation] = []
    waiting = list(roots)
    if not any(graph._may_have(_decides) for graph in {op.graph for op in waiting}):
        return []
    while waiting:
        op = waiting.pop()
        if op not in reached:
            reached.add(op)
            if op._spec.traits.control in _DATAFLOW:
                found.append(op)
            waiting += [t._op for t in op._inputs if t not in fed]
            waiting += op._control_inputs
    return _dependents(found, reached, fed) if found else found


def _decides(traits: Traits) -> bool:
    return traits.control in _DATAFLOW


def _dependents(
    found: list[Operation], reached: set[Operation], fed: Container[Tensor]
) -> list[Operation]:
    users: dict[Operation, list[Operation]] = {}
    for op in reached:
        for source in (*(t._op for t in op._inputs if t not in fed), *op._control_inputs):
            users.setdefault(source, []).append(op)
    inside: set[Operation] = set()
    waiting = list(found)
    while waiting:
        op = waiting.pop()
        if op not in inside:
            inside.add(op)
            waiting += users.get(op, ())
    return sorted(inside, key=lambda op: op._id)


__all__ = ["switched"]
