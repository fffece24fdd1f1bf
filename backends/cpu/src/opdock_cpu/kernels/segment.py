"""Segment ops: rows that are folded by the segment that each belongs to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, REALS, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.folds import fold_onto
from opdock_cpu.halves import narrowed, widened

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_FLOATS = frozenset({dtypes.float32, dtypes.float64})
_HALVES = (dtypes.float16.np, dtypes.bfloat16.np)
_UFUNCS = {"Sum": np.add, "Mean": np.add, "Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}


# ---------------------------------------------------------------- rows by segment
def _folded(
    ufunc: np.ufunc, data: Array, ids: Array, count: int, gap: Any, index: Array | None = None
) -> Array:
    """One row per segment, `gap` where it has none; 16-bit floats are folded in 32 bits.

    Args:
        ufunc: of two rows.
        data: the rows; with an `index` those that it names, in its order.
        ids: for each row its segment; rows of negative ones are left out.
        count: how many segments there are.
        gap: what segments without rows have.
        index: the numbers of rows.
    """
    rows = data.reshape(data.shape[0], math.prod(data.shape[1:]))
    wide = rows
    if data.dtype in _HALVES and ufunc in (np.add, np.multiply):
        wide = widened(rows)
    shape = count, rows.shape[1]
    # Zeros that nobody writes are never fetched from memory.
    out = np.full(shape, gap, wide.dtype) if gap else np.zeros(shape, wide.dtype)
    fold_onto(ufunc, out, np.zeros(count, np.bool_), wide, ids, index)
    return narrowed(out, data.dtype).reshape(count, *data.shape[1:])


def _sizes(ids: Array, count: int) -> Array:
    """How many rows each segment has, 1 instead of none."""
    return np.maximum(np.bincount(ids, minlength=count), 1)


def _check_sorted(ids: Array, count: int | None = None) -> None:
    if not ids.size:
        return
    if ids[0] < 0 or np.any(ids[1:] < ids[:-1]) or (count is not None and ids[-1] >= count):
        raise checks.unsorted_error(ids, count)


def _mean(total: Array, counts: Array) -> Array:
    """Row totals over row counts; integers divide as in C."""
    divisor = counts.reshape(-1, *[1] * (total.ndim - 1)).astype(total.dtype)
    if total.dtype.kind in "iu":
        return np.asarray((total - np.fmod(total, divisor)) // divisor)
    return np.asarray(total / divisor)


# ---------------------------------------------------------------- sorted ids
@table.binder("SegmentSum", "SegmentProd", "SegmentMean", T=NUMBERS)
@table.binder("SegmentMax", "SegmentMin", T=REALS)
def _segment(sig: NodeSig) -> Callable[[Array, Array], Array]:
    kind = sig.op.removeprefix("Segment")
    ufunc, gap = _UFUNCS[kind], 1 if kind == "Prod" else 0

    def run(data: Array, ids: Array) -> Array:
        checks.check_segment_ids(data, ids)
        _check_sorted(ids)
        count = int(ids[-1]) + 1 if len(ids) else 0
        out = _folded(ufunc, data, ids, count, gap)
        return _mean(out, _sizes(ids, count)) if kind == "Mean" else out

    return run


# ---------------------------------------------------------------- ids in any order
def _check_unsorted(data: Array, ids: Array, count: int) -> None:
    checks.check_segments(data, ids, count)
    if ids.size and ids.max() >= count:
        at = int(np.argmax(ids >= count))
        raise checks.out_of_segments(at, int(ids.reshape(-1)[at]), ids.shape, count)


@table.binder("UnsortedSegmentSum", "UnsortedSegmentProd", T=NUMBERS, host_inputs=("num_segments",))
@table.binder("UnsortedSegmentMax", "UnsortedSegmentMin", T=REALS, host_inputs=("num_segments",))
def _unsorted(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    kind, dtype = sig.op.removeprefix("UnsortedSegment"), sig.in_dtypes[0]
    gap: Any = {"Sum": 0, "Prod": 1, "Max": None, "Min": None}[kind]
    if gap is None:
        gap = dtype.min if kind == "Max" else dtype.max

    def run(data: Array, segment_ids: Array, num_segments: Array) -> Array:
        count, ids = int(num_segments), np.asarray(segment_ids)
        _check_unsorted(data, ids, count)
        rows = data.reshape(ids.size, *data.shape[ids.ndim :])
        if kind == "Sum" and rows.ndim == 1 and dtype in _FLOATS and _all_count(ids):
            return np.bincount(ids.reshape(-1), rows, count).astype(dtype.np, copy=False)
        return _folded(_UFUNCS[kind], rows, ids.reshape(-1), count, gap)

    return run


def _all_count(ids: Array) -> bool:
    """Whether no row is left out."""
    return not ids.size or bool(ids.min() >= 0)


# ---------------------------------------------------------------- picked rows
def _check_picked(data: Array, indices: Array) -> None:
    bad = (indices < 0) | (indices >= data.shape[0])
    if bad.any():
        i = int(np.argmax(bad))
        raise checks.no_picked_row(i, int(indices[i]), data.shape[0])


_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@table.binder(*_SPARSE, T=REALS)
@table.binder(*(f"{op}WithNumSegments" for op in _SPARSE), T=REALS, host_inputs=("num_segments",))
def _sparse(sig: NodeSig) -> Callable[..., Array]:
    kind = sig.op.removesuffix("WithNumSegments").removeprefix("SparseSegment")

    def run(data: Array, indices: Array, ids: Array, num_segments: Any = None) -> Array:
        checks.check_picked_ids(indices, ids)
        given = None if num_segments is None else int(num_segments)
        _check_sorted(ids, given)
        last = int(ids[-1]) + 1 if len(ids) else 0
        count = last if given is None else given
        if len(ids):
            _check_picked(data, indices)
        out = _folded(np.add, data, ids, count, 0, indices)
        if kind == "Sum":
            return out
        sizes = _sizes(ids, count)
        return _mean(out, sizes if kind == "Mean" else np.sqrt(sizes))

    return run


@table.binder(
    "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", T=_FLOATS, host_inputs=("output_dim0",)
)
def _sparse_grad(sig: NodeSig) -> Callable[..., Array]:
    by_root = sig.op == "SparseSegmentSqrtNGrad"
    dtype = sig.in_dtypes[0]

    def run(grad: Array, indices: Array, ids: Array, output_dim0: Array) -> Array:
        rows = int(output_dim0)
        count = grad.shape[0]
        bad = (ids < 0) | (ids >= count)
        if bad.any():
            raise checks.no_segment(int(ids[np.argmax(bad)]), count, int(ids[-1]), rows)
        outside = (indices < 0) | (indices >= rows)
        if outside.any():
            raise checks.no_row(int(indices[np.argmax(outside)]), rows)
        sizes = np.maximum(np.bincount(ids, minlength=count), 1).astype(dtype.np)
        scaled = _mean(grad, np.sqrt(sizes) if by_root else sizes)[ids]
        return _folded(np.add, scaled, indices, rows, 0)

    return run
