"""Sums, means and extremes of rows that share a (sorted) segment id."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.arithmetic import maximum, truncatediv
from opdock.ops.array import broadcast_to, rank, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, greater
from opdock.ops.complex import conj
from opdock.ops.composed.division import divide, truediv
from opdock.ops.fill import fill, ones_like, zeros_like
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_max
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.select import where
from opdock.ops.support import array_util
from opdock.ops.unsorted_segment import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)  # fmt: skip
from opdock.shapes import Shape

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"]


def _define(name: str, types: str) -> OpSpec:
    return define_op(
        name,
        "data: T, segment_ids: Tindices -> output: T",
        f"T: {types}, Tindices: {{int32, int64}}",
    )


segment_sum_op = _define("SegmentSum", "numbertype")
segment_mean_op = _define("SegmentMean", "numbertype")
segment_prod_op = _define("SegmentProd", "numbertype")
segment_max_op = _define("SegmentMax", "realnumbertype")
segment_min_op = _define("SegmentMin", "realnumbertype")


@segment_sum_op.shape
@segment_mean_op.shape
@segment_prod_op.shape
@segment_max_op.shape
@segment_min_op.shape
def _segment_shape(sig: ShapeSig) -> Shape:
    data = shapes.with_rank_at_least(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[1], 1)
    return shapes.concat((None,), array_util.subshape(data, 1))


# ---------------------------------------------------------------- gradients
@segment_sum_op.gradient
def _segment_sum_grad(op: Operation, grad: Any) -> list[Any]:
    return [gather(grad, op.inputs[1]), None]


@segment_mean_op.gradient
def _segment_mean_grad(op: Operation, grad: Any) -> list[Any]:
    data, ids = op.inputs
    counts = segment_sum(ones_like(ids), ids)
    per_row = column(cast(gather(counts, ids), grad.dtype), data)
    return [gather(grad, ids) / per_row, None]


def column(vector: Tensor, data: Tensor) -> Tensor:
    """A vector with one entry per row of `data`, shaped to broadcast against it."""
    static = data.raw_shape
    if static is not None:
        return reshape(vector, [-1] + [1] * (len(static) - 1))
    ones = fill(reshape(rank(data) - 1, [1]), 1)
    return reshape(vector, concat([[-1], ones], 0))


@segment_max_op.gradient
@segment_min_op.gradient
def _segment_extreme_grad(op: Operation, grad: Any) -> list[Any]:
    data, ids = op.inputs
    selected = equal(data, gather(op.outputs[0], ids))
    count = segment_sum(cast(selected, grad.dtype), ids)
    shares = gather(divide(grad, count), ids)
    return [where(selected, shares, zeros_like(data)), None]


@segment_prod_op.gradient
def _segment_prod_grad(op: Operation, grad: Any) -> list[Any]:
    data, ids = op.inputs
    is_zero = equal(data, zeros_like(data))
    zeros = segment_sum(cast(is_zero, dtypes.int32), ids)
    # With two zeros in a segment, no element of it moves the product.
    grad = where(greater(zeros, 1), zeros_like(grad), grad)
    others = segment_prod(where(is_zero, ones_like(data), data), ids)
    rest = where(is_zero, gather(others, ids), gather(op.outputs[0], ids) / data)
    return [gather(grad, ids) * conj(rest), None]


# ---------------------------------------------------------------- decompositions
# Sorted ids are as good as any. That they are sorted goes unchecked, as on TF's GPUs.
def segment_count(ids: Tensor) -> Tensor:
    """One more than the largest id; 0 without ids."""
    return maximum(reduce_max(ids, [0]), -1) + 1


@segment_sum_op.decomposition
def _segment_sum_parts(sig: ShapeSig, data: Tensor, ids: Tensor) -> Tensor:
    return unsorted_segment_sum(data, ids, segment_count(ids))


@segment_prod_op.decomposition
def _segment_prod_parts(sig: ShapeSig, data: Tensor, ids: Tensor) -> Tensor:
    return unsorted_segment_prod(data, ids, segment_count(ids))


def row_counts(ids: Tensor, count: Tensor) -> Tensor:
    """How many rows each segment has."""
    return unsorted_segment_sum(ones_like(ids), ids, count)


@segment_mean_op.decomposition
def _segment_mean_parts(sig: ShapeSig, data: Tensor, ids: Tensor) -> Tensor:
    count = segment_count(ids)
    rows = column(cast(maximum(row_counts(ids, count), 1), data.dtype), data)
    divide_ = truncatediv if data.dtype.is_integer else truediv
    return divide_(unsorted_segment_sum(data, ids, count), rows)


@segment_max_op.decomposition
@segment_min_op.decomposition
def _segment_extreme_parts(sig: ShapeSig, data: Tensor, ids: Tensor) -> Tensor:
    fold = unsorted_segment_max if sig.op == "SegmentMax" else unsorted_segment_min
    count = segment_count(ids)
    out = fold(data, ids, count)
    present = broadcast_to(column(greater(row_counts(ids, count), 0), data), shape(out))
    return where(present, out, zeros_like(out))


# ---------------------------------------------------------------- public functions
_WORDS = {
    "data": "a numeric tensor.",
    "segment_ids": "a vector of as many non-negative ids as `data` has rows, in ascending order.",
    "name": "a name for the operation.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    returns="A tensor whose row i is the sum of the rows of id i; 0 for an id that does not occur.",
    raises="InvalidArgumentError: the ids decrease or are negative (when it runs).",
)
def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Adds the rows that share a segment id."""
    return segment_sum_op(data, segment_ids, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    returns="A tensor whose row i is the mean of the rows of id i; 0 for an id that does not "
    "occur.",
)
def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Averages the rows that share a segment id."""
    return segment_mean_op(data, segment_ids, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    returns="A tensor whose row i is the product of the rows of id i; 1 for an id that does not "
    "occur.",
)
def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Multiplies the rows that share a segment id."""
    return segment_prod_op(data, segment_ids, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    data="a real numeric tensor.",
    returns="A tensor whose row i is the maximum of the rows of id i; 0 for an id that does not "
    "occur.",
)
def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The largest elements of the rows that share a segment id."""
    return segment_max_op(data, segment_ids, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    data="a real numeric tensor.",
    returns="A tensor whose row i is the minimum of the rows of id i; 0 for an id that does not "
    "occur.",
)
def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The smallest elements of the rows that share a segment id."""
    return segment_min_op(data, segment_ids, name=name)  # type: ignore[no-any-return]
