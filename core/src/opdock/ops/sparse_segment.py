"""Sums and means of rows picked by index, by segment (`tf.sparse_segment_*`)."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.docstrings import explained
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.arithmetic import maximum
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.elementary import sqrt
from opdock.ops.gather import gather
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.segment import column, row_counts, segment_count
from opdock.ops.support import array_util
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.shapes import Shape

__all__ = ["sparse_segment_mean", "sparse_segment_sqrt_n", "sparse_segment_sum"]

_IDX = "Tidx: {int32, int64} = DT_INT32"


def _define(name: str, types: str) -> OpSpec:
    return define_op(
        name, "data: T, indices: Tidx, segment_ids: int32 -> output: T", f"T: {types}, {_IDX}"
    )


def _define_counted(name: str, types: str) -> OpSpec:
    return define_op(
        f"{name}WithNumSegments",
        "data: T, indices: Tidx, segment_ids: int32, num_segments: Tnumsegments -> output: T",
        f"T: {types}, {_IDX}, Tnumsegments: {{int32, int64}} = DT_INT32",
    )


def _define_grad(name: str) -> OpSpec:
    return define_op(
        f"{name}Grad",
        "grad: T, indices: Tidx, segment_ids: int32, output_dim0: int32 -> output: T",
        f"T: {{float, double}}, {_IDX}",
    )  # fmt: skip


sum_op = _define("SparseSegmentSum", "realnumbertype")
mean_op = _define("SparseSegmentMean", "{float, double}")
sqrt_n_op = _define("SparseSegmentSqrtN", "{float, double}")
sum_counted_op = _define_counted("SparseSegmentSum", "realnumbertype")
mean_counted_op = _define_counted("SparseSegmentMean", "{float, double}")
sqrt_n_counted_op = _define_counted("SparseSegmentSqrtN", "{float, double}")
mean_grad_op = _define_grad("SparseSegmentMean")
sqrt_n_grad_op = _define_grad("SparseSegmentSqrtN")


# ---------------------------------------------------------------- shapes
def _rest(sig: ShapeSig) -> Shape:
    """The dimensions of the data after the first; checks the index vectors."""
    data = shapes.with_rank_at_least(sig.shapes[0], 1)
    shapes.merge(shapes.with_rank(sig.shapes[1], 1), shapes.with_rank(sig.shapes[2], 1))
    return array_util.subshape(data, 1)


@sum_op.shape
@mean_op.shape
@sqrt_n_op.shape
def _sparse_shape(sig: ShapeSig) -> Shape:
    return shapes.concat((None,), _rest(sig))


@sum_counted_op.shape
@mean_counted_op.shape
@sqrt_n_counted_op.shape
def _counted_shape(sig: ShapeSig) -> Shape:
    count = array_util.const_int(sig, 3)
    if count is not None and count < 0:
        raise ValueError("Cannot specify a negative value for num_segments")
    return shapes.concat((count,), _rest(sig))


@mean_grad_op.shape
@sqrt_n_grad_op.shape
def _grad_shape(sig: ShapeSig) -> Shape:
    rows = array_util.const_int(sig, 3)
    if rows is not None and rows < 0:
        raise ValueError("Cannot specify a negative value for output_dim0")
    return shapes.concat((rows,), _rest(sig))


# ---------------------------------------------------------------- gradients
def _rows(op: Operation) -> Tensor:
    return shape(op.inputs[0])[0]


@sum_op.gradient
@sum_counted_op.gradient
def _sum_grad(op: Operation, grad: Any) -> list[Any]:
    indices, ids = op.inputs[1], op.inputs[2]
    out = unsorted_segment_sum(gather(grad, ids), indices, _rows(op))
    return [out, *[None] * (len(op.inputs) - 1)]


@mean_op.gradient
@mean_counted_op.gradient
def _mean_grad(op: Operation, grad: Any) -> list[Any]:
    out = mean_grad_op(grad, op.inputs[1], op.inputs[2], _rows(op))
    return [out, *[None] * (len(op.inputs) - 1)]


@sqrt_n_op.gradient
@sqrt_n_counted_op.gradient
def _sqrt_n_grad(op: Operation, grad: Any) -> list[Any]:
    out = sqrt_n_grad_op(grad, op.inputs[1], op.inputs[2], _rows(op))
    return [out, *[None] * (len(op.inputs) - 1)]


@mean_grad_op.gradient
def _mean_grad_grad(op: Operation, grad: Any) -> list[Any]:
    # The op is linear, and its transpose is the forward op.
    return [mean_counted_op(grad, op.inputs[1], op.inputs[2], _rows(op)), None, None, None]


@sqrt_n_grad_op.gradient
def _sqrt_n_grad_grad(op: Operation, grad: Any) -> list[Any]:
    return [sqrt_n_counted_op(grad, op.inputs[1], op.inputs[2], _rows(op)), None, None, None]


# ---------------------------------------------------------------- decompositions
def _segments(ids: Tensor, count: tuple[Tensor, ...]) -> Tensor:
    return count[0] if count else segment_count(ids)


@sum_op.decomposition
@sum_counted_op.decomposition
def _sum_parts(sig: ShapeSig, data: Tensor, indices: Tensor, ids: Tensor, *n: Tensor) -> Tensor:
    return unsorted_segment_sum(gather(data, indices), ids, _segments(ids, n))


@mean_op.decomposition
@mean_counted_op.decomposition
@sqrt_n_op.decomposition
@sqrt_n_counted_op.decomposition
def _mean_parts(sig: ShapeSig, data: Tensor, indices: Tensor, ids: Tensor, *n: Tensor) -> Tensor:
    rows, count = gather(data, indices), _segments(ids, n)
    sizes = cast(maximum(row_counts(ids, count), 1), data.dtype)
    if "SqrtN" in sig.op:
        sizes = sqrt(sizes)
    return unsorted_segment_sum(rows, ids, count) / column(sizes, rows)


@mean_grad_op.decomposition
@sqrt_n_grad_op.decomposition
def _grad_parts(sig: ShapeSig, grad: Tensor, indices: Tensor, ids: Tensor, rows: Tensor) -> Tensor:
    sizes = cast(maximum(row_counts(ids, shape(grad)[0]), 1), grad.dtype)
    if "SqrtN" in sig.op:
        sizes = sqrt(sizes)
    return unsorted_segment_sum(gather(grad / column(sizes, grad), ids), indices, rows)


# ---------------------------------------------------------------- public functions
_WORDS = {
    "data": "a float32 or float64 tensor.",
    "indices": "a vector of row numbers of `data`.",
    "segment_ids": "the segment of each picked row, an int32 vector in ascending order.",
    "name": "a name for the operation.",
    "num_segments": "the number of segments; by default the last id plus one.",
    "returns": "A tensor with one row per segment; 0 in segments without rows.",
}
"""What the functions here take."""


@explained(
    _WORDS,
    data="a real numeric tensor.",
    raises="InvalidArgumentError: an index is out of range or the ids decrease (when it runs).",
)
def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Adds rows of `data` that are picked by index, by segment."""
    if num_segments is not None:
        return sum_counted_op(data, indices, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]
    return sum_op(data, indices, segment_ids, name=name)  # type: ignore[no-any-return]


@explained(_WORDS)
def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Averages rows of `data` that are picked by index, by segment."""
    if num_segments is not None:
        return mean_counted_op(data, indices, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]
    return mean_op(data, indices, segment_ids, name=name)  # type: ignore[no-any-return]


@explained(_WORDS)
def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Adds picked rows of `data` by segment, over the square root of the segment's size."""
    if num_segments is not None:
        return sqrt_n_counted_op(data, indices, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]
    return sqrt_n_op(data, indices, segment_ids, name=name)  # type: ignore[no-any-return]
