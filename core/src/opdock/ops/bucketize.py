"""Numbers as bits and buckets: which interval they fall into, whether they pass a threshold."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []

bucketize_op = define_op(
    "Bucketize", "input: T -> output: int32",
    "T: {int32, int64, float, double}, boundaries: list(float)",
).not_differentiable()  # fmt: skip
compare_and_bitpack_op = define_op(
    "CompareAndBitpack", "input: T, threshold: T -> output: uint8",
    "T: {bool, half, float, double, int8, int16, int32, int64}",
).not_differentiable()  # fmt: skip


@bucketize_op.shape
def _same_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[0]


@compare_and_bitpack_op.shape
def _eighth(sig: ShapeSig) -> Shape:
    source = shapes.with_rank_at_least(sig.shapes[0], 1)
    array_util.scalar_shape(sig, 1)
    if source is None:
        return None
    last = source[-1]
    if last is not None and last % 8:
        raise ValueError(f"Dimension size must be evenly divisible by 8 but is {last}")
    return (*source[:-1], None if last is None else last // 8)
