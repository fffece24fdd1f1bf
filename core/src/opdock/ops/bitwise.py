"""Operations on the bits of integers: `tf.bitwise`."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import ELEMENTWISE, PAIRWISE, explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import OpSpec, define_op
from opdock.ops.support.common_shapes import broadcast2, unchanged

__all__: list[str] = []  # everything here lives in the namespace tf.bitwise

_INTS = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"


def _binary(op: str, expr: str, *, commutative: bool = False) -> OpSpec:
    spec = define_op(op, "x: T, y: T -> z: T", _INTS, expr=expr, commutative=commutative)
    spec.shape(broadcast2)
    return spec.not_differentiable()


bitwise_and_op = _binary("BitwiseAnd", "x & y", commutative=True)
bitwise_or_op = _binary("BitwiseOr", "x | y", commutative=True)
bitwise_xor_op = _binary("BitwiseXor", "x ^ y", commutative=True)
left_shift_op = _binary("LeftShift", "x << y")
right_shift_op = _binary("RightShift", "x >> y")
invert_op = define_op("Invert", "x: T -> y: T", _INTS, expr="~x").not_differentiable()
population_count_op = define_op(
    "PopulationCount", "x: T -> y: uint8", _INTS, expr="popcount(x)"
).not_differentiable()
invert_op.shape(unchanged)
population_count_op.shape(unchanged)


@extensible
@explained(PAIRWISE)
def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in both, elementwise, with broadcasting, for integers of one type."""
    return bitwise_and_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in either, elementwise, with broadcasting, for integers of one type."""
    return bitwise_or_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in exactly one, elementwise, with broadcasting, for integers."""
    return bitwise_xor_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def invert(x: Any, name: str | None = None) -> Tensor:
    """Every bit flipped, elementwise, for integers."""
    return invert_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x` shifted left by `y` bits, elementwise, with broadcasting, for integers of one type.

    A shift below 0 counts as 0, one beyond the width as the width less 1.
    """
    return left_shift_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x` shifted right by `y` bits, elementwise, with broadcasting, for integers of one type.

    Signed types keep their sign. A shift below 0 counts as 0, one beyond the width as the width
    less 1.
    """
    return right_shift_op(x, y, name=name)  # type: ignore[no-any-return]


@explained(ELEMENTWISE)
def population_count(x: Any, name: str | None = None) -> Tensor:
    """The number of one bits of each element, as uint8, for integers."""
    return population_count_op(x, name=name)  # type: ignore[no-any-return]
