"""What the segment ops compute: rows of equal segment id are folded into one row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]
Fold = Callable[[list[Array]], Array]


def _total(rows: list[Array]) -> Array:
    return np.asarray(np.sum(rows, axis=0))


def _product(rows: list[Array]) -> Array:
    return np.asarray(np.prod(rows, axis=0))


def _largest(rows: list[Array]) -> Array:
    return np.asarray(np.max(rows, axis=0))


def _smallest(rows: list[Array]) -> Array:
    return np.asarray(np.min(rows, axis=0))


def _average(rows: list[Array]) -> Array:
    total = _total(rows)
    if total.dtype.kind == "i":
        return np.trunc(total / len(rows)).astype(total.dtype)
    return total / len(rows)


def _over_root(rows: list[Array]) -> Array:
    return _total(rows) / math.sqrt(len(rows))


def _fold(rows: Array, ids: Array, count: int, fold: Fold, gap: Any) -> Array:
    """Row i of the result folds the rows whose id is i; segments without rows hold `gap`."""
    out = np.full((count, *rows.shape[1:]), gap, rows.dtype)
    for segment in range(count):
        members = [row for row, at in zip(rows, ids, strict=True) if at == segment]
        if members:
            out[segment] = fold(members)
    return out


def _sorted(data: Array, ids: Array, fold: Fold, gap: Any) -> Array:
    return _fold(data, ids, int(ids[-1]) + 1 if len(ids) else 0, fold, gap)


@reference("SegmentSum")
def segment_sum(attrs: Attrs, data: Array, ids: Array) -> Array:
    """Sums of rows of equal id; an id that does not occur gives 0."""
    return _sorted(data, ids, _total, 0)


@reference("SegmentMean")
def segment_mean(attrs: Attrs, data: Array, ids: Array) -> Array:
    """Means of rows of equal id; an id that does not occur gives 0."""
    return _sorted(data, ids, _average, 0)


@reference("SegmentProd")
def segment_prod(attrs: Attrs, data: Array, ids: Array) -> Array:
    """Products of rows of equal id; an id that does not occur gives 1."""
    return _sorted(data, ids, _product, 1)


@reference("SegmentMax")
def segment_max(attrs: Attrs, data: Array, ids: Array) -> Array:
    """Maxima of rows of equal id; an id that does not occur gives 0."""
    return _sorted(data, ids, _largest, 0)


@reference("SegmentMin")
def segment_min(attrs: Attrs, data: Array, ids: Array) -> Array:
    """Minima of rows of equal id; an id that does not occur gives 0."""
    return _sorted(data, ids, _smallest, 0)


def _unsorted(data: Array, ids: Array, count: Array, fold: Fold, gap: Any) -> Array:
    rows = data.reshape((ids.size, *data.shape[ids.ndim :]))
    return _fold(rows, ids.ravel(), int(count), fold, gap)


def _limit(attrs: Attrs, which: str) -> Any:
    dtype: Any = np.dtype(attrs["T"])
    if dtype.kind in "iu":
        return np.array(getattr(np.iinfo(dtype), which)).astype(np.int64)
    if dtype.name == "bfloat16":
        return float.fromhex("0x1.fep127") * (1 if which == "max" else -1)
    return getattr(np.finfo(dtype), which)


@reference("UnsortedSegmentSum")
def unsorted_segment_sum(attrs: Attrs, data: Array, ids: Array, count: Array) -> Array:
    """Sums of slices of equal id; negative ids are dropped."""
    return _unsorted(data, ids, count, _total, 0)


@reference("UnsortedSegmentProd")
def unsorted_segment_prod(attrs: Attrs, data: Array, ids: Array, count: Array) -> Array:
    """Products of slices of equal id."""
    return _unsorted(data, ids, count, _product, 1)


@reference("UnsortedSegmentMax")
def unsorted_segment_max(attrs: Attrs, data: Array, ids: Array, count: Array) -> Array:
    """Maxima of slices of equal id; the lowest number of the type where there is none."""
    return _unsorted(data, ids, count, _largest, _limit(attrs, "min"))


@reference("UnsortedSegmentMin")
def unsorted_segment_min(attrs: Attrs, data: Array, ids: Array, count: Array) -> Array:
    """Minima of slices of equal id; the highest number of the type where there is none."""
    return _unsorted(data, ids, count, _smallest, _limit(attrs, "max"))


def _sparse(data: Array, indices: Array, ids: Array, count: Array | None, fold: Fold) -> Array:
    if count is None:
        return _sorted(data[indices], ids, fold, 0)
    return _fold(data[indices], ids, int(count), fold, 0)


@reference("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def sparse_segment_sum(
    attrs: Attrs, data: Array, indices: Array, ids: Array, count: Array | None = None
) -> Array:
    """Sums of the rows picked by `indices`, by segment."""
    return _sparse(data, indices, ids, count, _total)


@reference("SparseSegmentMean", "SparseSegmentMeanWithNumSegments")
def sparse_segment_mean(
    attrs: Attrs, data: Array, indices: Array, ids: Array, count: Array | None = None
) -> Array:
    """Means of the rows picked by `indices`, by segment."""
    return _sparse(data, indices, ids, count, _average)


@reference("SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments")
def sparse_segment_sqrt_n(
    attrs: Attrs, data: Array, indices: Array, ids: Array, count: Array | None = None
) -> Array:
    """Sums of the rows picked by `indices`, by segment, over the root of the segment's size."""
    return _sparse(data, indices, ids, count, _over_root)


def _spread(grad: Array, indices: Array, ids: Array, rows: Array, weight: Any) -> Array:
    out = np.zeros((int(rows), *grad.shape[1:]), grad.dtype)
    for index, segment in zip(indices, ids, strict=True):
        out[index] += grad[segment] / weight(sum(ids == segment))
    return out


@reference("SparseSegmentMeanGrad")
def sparse_segment_mean_grad(
    attrs: Attrs, grad: Array, indices: Array, ids: Array, rows: Array
) -> Array:
    """Each picked row's share of its segment's gradient: one over the segment's size."""
    return _spread(grad, indices, ids, rows, float)


@reference("SparseSegmentSqrtNGrad")
def sparse_segment_sqrt_n_grad(
    attrs: Attrs, grad: Array, indices: Array, ids: Array, rows: Array
) -> Array:
    """Each picked row's share of its segment's gradient: one over the root of its size."""
    return _spread(grad, indices, ids, rows, math.sqrt)
