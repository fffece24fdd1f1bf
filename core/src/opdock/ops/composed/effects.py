"""Operations that a function adds, in the order in which its effects have to happen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["in_order"]


def in_order(made: Sequence[Operation]) -> list[Operation]:
    """Operations with effects or over state, each made to wait for the one before it."""
    ordered = [op for op in made if op.spec.has_effect or any(map(_is_state, op.inputs))]
    for first, second in itertools.pairwise(ordered):
        second._add_control_input(first)
    return ordered


def _is_state(tensor: Tensor) -> bool:
    return tensor.dtype._is_ref_dtype or tensor.dtype is dtypes.resource
