"""A function of many elements at once, made of a function of one.

Every op takes a row for each element in the place of the element, and gives as many rows. Ops whose
results depend on what stands in the same place alone do that as they are, others by the rule that
stands with their definition. Where there is no rule, the function is called for each element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import shapes
from opdock.graph.control.func_graph import FuncGraph, arg_op, by_inputs
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import device
from opdock.graph.nodes.traits import Elementwise
from opdock.shapes import Shape

__all__ = ["by_rows"]

_LARGEST: Final = 4096
"""Numbers of an element beyond which computing takes longer than calling."""


def by_rows(function: FuncGraph, count: int | None = None) -> FuncGraph | None:
    """The function whose parameters, but for captures, and results have a row for each element.

    Args:
        function: of one element.
        count: where its only parameter, but for captures, is an element's number: how many there
            are. The function has no such parameter then.

    Returns:
        The function; None where an op has no rule, or has state or an effect, or where elements
        are so large that nothing would be won.
    """
    if function.targets or function.stateful:
        return None
    try:
        return _Rows(function, count).result()
    except (_NoRule, ValueError, TypeError):  # or a rule's node takes no such shapes
        return None


class _NoRule(Exception):
    """An op cannot take rows."""


class _Rows:
    """The rewriting of one function."""

    def __init__(self, function: FuncGraph, count: int | None) -> None:
        self._function, self._count = function, count
        self._graph = FuncGraph(f"{function.func_name}_rows", None)
        self._made: dict[Tensor, Tensor] = {}
        self._rowed: set[Tensor] = set()  # of the function's tensors

    def result(self) -> FuncGraph:
        """The new function."""
        function, graph = self._function, self._graph
        needed = function.needed()
        with graph.as_default():
            self._parameters()
            for op in by_inputs(function.get_operations(), needed):
                if op.spec is not arg_op:
                    with device(op._device or None):
                        self._add(op)
        if not self._rowed.issuperset(function.outputs):
            raise _NoRule
        graph.outputs = [self._made[t] for t in function.outputs]
        return graph

    def _parameters(self) -> None:
        inputs = self._function.inputs
        elements = len(inputs) - len(self._function.captures)
        for i, outer in enumerate(inputs):
            rowed = i < elements
            if rowed and self._count is not None:
                self._rowed.add(outer)
                self._made[outer] = constant(np.arange(self._count, dtype=outer._dtype.np))
                continue
            shape = _with_rows(outer._shape) if rowed else outer._shape
            if rowed:
                self._rowed.add(outer)
            self._made[outer] = self._graph.add_input(outer._dtype, shape)

    def _add(self, op: Operation) -> None:
        if op._control_inputs:
            raise _NoRule
        inputs = [self._made[t] for t in op._inputs]
        rowed = [t in self._rowed for t in op._inputs]
        if not any(rowed):
            outputs: Sequence[Tensor] = self._copy(op, inputs, [t._shape for t in op.outputs])
        else:
            outputs = self._with_rule(op, inputs, rowed)
            self._rowed.update(op.outputs)
        self._made.update(zip(op.outputs, outputs, strict=True))

    def _with_rule(
        self, op: Operation, inputs: list[Tensor], rowed: list[bool]
    ) -> Sequence[Tensor]:
        if any(_size(t._shape) > _LARGEST for t in op.outputs):
            raise _NoRule
        spec, traits = op.spec, op.spec.traits
        if spec.rows_fn is not None:
            found = spec.rows_fn(op, inputs, rowed)
            if found is None:
                raise _NoRule
            return found
        if traits.reshapes:
            return [self._reshaped(inputs[0], op.outputs[0]._shape, rowed)]
        if spec.expr is not None or isinstance(traits.layout, Elementwise):
            inputs = self._aligned(op, inputs, rowed)
        elif not (traits.forwards and all(rowed)):
            raise _NoRule
        return self._copy(op, inputs, [_with_rows(t._shape) for t in op.outputs])

    def _copy(
        self, op: Operation, inputs: list[Tensor], result_shapes: Sequence[Shape]
    ) -> list[Tensor]:
        """The same op."""
        graph = self._graph
        types = [t._dtype for t in op.outputs]
        made = graph._create_op(op.spec, graph.unique_name(op.name), inputs, dict(op.attrs), types)
        for tensor, shape in zip(made.outputs, result_shapes, strict=True):
            tensor._shape = shape
        return list(made.outputs)

    def _aligned(self, op: Operation, inputs: list[Tensor], rowed: list[bool]) -> list[Tensor]:
        """Inputs whose rows come first although some have fewer dimensions than others."""
        ranks = [None if t._shape is None else len(t._shape) for t in op._inputs]
        if len(set(ranks)) == 1 and all(rowed):
            return inputs
        if op.spec.expr is None:  # nothing says that it broadcasts
            raise _NoRule
        known = [r for r in ranks if r is not None]
        if len(known) < len(ranks):
            raise _NoRule
        out = []
        for outer, tensor, has_rows, rank in zip(op._inputs, inputs, rowed, known, strict=True):
            missing = max(known) - rank
            if has_rows and missing:
                shape: Shape = (*[1] * missing, *(outer._shape or ()))
                out.append(self._reshaped(tensor, shape, [True]))
            else:
                out.append(tensor)
        return out

    def _reshaped(self, tensor: Tensor, shape: Shape, rowed: Sequence[bool]) -> Tensor:
        """Rows in another shape."""
        if not rowed[0] or not shapes.is_fully_defined(shape) or not _size(shape):
            raise _NoRule
        target = np.array([-1, *(shape or ())], np.int32)
        made: Tensor = get("Reshape")(tensor, constant(target))
        return made


def _with_rows(shape: Shape) -> Shape:
    return None if shape is None else (None, *shape)


def _size(shape: Shape) -> int:
    """How many numbers, as far as that is known."""
    sizes: list[Any] = [1] if shape is None else [1 if d is None else d for d in shape]
    return math.prod(sizes)
