"""Operations that a function adds, in the order in which its effects have to happen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.identity import identity

__all__ = ["after", "in_order"]


def in_order(made: Sequence[Operation]) -> list[Operation]:
    """Operations with effects or over state, each made to wait for the one before it."""
    ordered = [op for op in made if op.spec.has_effect or any(map(_is_state, op.inputs))]
    for first, second in itertools.pairwise(ordered):
        second._add_control_input(first)
    return ordered


def _is_state(tensor: Tensor) -> bool:
    return tensor.dtype._is_ref_dtype or tensor.dtype is dtypes.resource


def after(effects: list[Operation], result: Any) -> Any:
    """The function's results, which wait for its effects; of none, an operation that does."""
    if not effects and result is not None:
        return result

    def waiting(value: Any) -> Any:
        if isinstance(value, Tensor):
            return identity(value)
        if isinstance(value, dict):
            return {k: waiting(v) for k, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(waiting, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(waiting, value))
        return value

    with control_dependencies(effects):
        if result is None:
            from opdock.ops.control import no_op

            return no_op()
        return waiting(result)
