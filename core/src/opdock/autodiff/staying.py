"""What is the same in all turns of a loop: a backward loop gets it from outside.

Of what turns compute, each value that a gradient needs is kept, turn by turn. A variable that turns
only read has one value for all of them, which the loop hands out when it ends, and so have the
pieces of it that layers cut out in each turn: these are cut out anew, which costs nothing, and
products of them stay known as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from opdock.graph.control.function_op import copy_operation
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.support.recorded import plain_scope
from opdock.shapes import is_fully_defined

__all__ = ["Staying"]

_READ: Final = "ReadVariableOp"
_MOVES: Final = frozenset({
    "Concat", "ConcatV2", "ExpandDims", "Identity", "Pack", "Reshape", "Shape", "Slice", "Split",
    "SplitV", "Squeeze", "StridedSlice", "Transpose", "Unpack",
})  # fmt: skip
"""Ops that only move elements."""


class Staying:
    """The values of a loop's body that are the same in all turns.

    Args:
        invariant: the input of the loop that a parameter of its body always equals, or None.
        last: has the loop hand out what a tensor of its body is in the last turn.
    """

    def __init__(
        self, invariant: Callable[[Tensor], Tensor | None], last: Callable[[Tensor], Tensor]
    ) -> None:
        self._invariant, self._last = invariant, last
        self._known: dict[Operation, bool] = {}
        self._read: dict[Tensor, Tensor] = {}

    def again(self, graph: Graph, tensor: Tensor, has: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """All results of what makes a tensor, in another graph; none if it does not stay.

        Args:
            graph: where they are made.
            tensor: of the body.
            has: what the graph has for a tensor of the body, or from outside of the loop.
        """
        op = tensor.op
        if not self._stays(op):
            return []
        if op.type == _READ:
            return [has(self._held(tensor))]
        with plain_scope(graph):
            return list(copy_operation(graph, op, [has(t) for t in op.inputs], ()).outputs)

    def _stays(self, op: Operation) -> bool:
        known = self._known.get(op)
        if known is None:
            known = self._known[op] = self._found(op)
        return known

    def _found(self, op: Operation) -> bool:
        if op.type == "Const":
            return True
        if op.type == "_Arg":
            return self._invariant(op.outputs[0]) is not None
        if op.control_inputs:
            return False
        if op.type == _READ:
            known = is_fully_defined(op.outputs[0].raw_shape)
            return known and self._stays(op.inputs[0].op) and self._only_read(op.inputs[0])
        return op.type in _MOVES and all(self._stays(t.op) for t in op.inputs)

    def _only_read(self, handle: Tensor) -> bool:
        """Whether a turn does nothing with a variable but read it, nor gives its handle away."""
        return all(user.type == _READ for user in handle.consumers())

    def _held(self, value: Tensor) -> Tensor:
        """The value of a variable, outside of the loop."""
        handle = value.op.inputs[0]
        found = self._read.get(handle)
        if found is None:
            found = self._read[handle] = self._last(value)
        return found
