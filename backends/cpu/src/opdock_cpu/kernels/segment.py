"""Segment ops on NumPy: rows are sorted by segment, then each run of rows is folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, REALS, DType, KernelTable, NodeSig, checks, dtypes

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_FLOATS = frozenset({dtypes.float32, dtypes.float64})
_HALVES = (dtypes.float16, dtypes.bfloat16)
_UFUNCS = {"Sum": np.add, "Mean": np.add, "Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}


# ---------------------------------------------------------------- runs of equal ids
def _starts(ids: Array) -> Array:
    """Where runs of equal ids begin."""
    return np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))


def _fold_runs(ufunc: np.ufunc, rows: Array, starts: Array, dtype: DType) -> Array:
    """One row per run; 16-bit floats are folded in 32 bits."""
    wide = rows.astype(np.float32) if dtype in _HALVES and ufunc in (np.add, np.multiply) else rows
    out: Array = ufunc.reduceat(wide, starts, 0, wide.dtype)
    return out


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
    kind, dtype = sig.op.removeprefix("Segment"), sig.in_dtypes[0]
    ufunc, gap = _UFUNCS[kind], 1 if kind == "Prod" else 0

    def run(data: Array, ids: Array) -> Array:
        if ids.ndim != 1:
            raise checks.invalid("segment_ids should be a vector.")
        if not data.ndim or len(ids) != data.shape[0]:
            raise checks.invalid("segment_ids should be the same size as dimension 0 of input.")
        _check_sorted(ids)
        count = int(ids[-1]) + 1 if len(ids) else 0
        out = np.full((count, *data.shape[1:]), gap, dtype.np)
        if count:
            starts = _starts(ids)
            folded = _fold_runs(ufunc, data, starts, dtype)
            if kind == "Mean":
                folded = _mean(folded, np.diff(starts, append=len(ids)))
            out[ids[starts]] = folded
        return out

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
        return _unsorted_fold(_UFUNCS[kind], rows, ids.reshape(-1), count, gap, dtype)

    return run


def _unsorted_fold(
    ufunc: np.ufunc, rows: Array, ids: Array, count: int, gap: Any, dtype: DType
) -> Array:
    if ufunc is np.add and rows.ndim == 1 and dtype in _FLOATS and (not ids.size or ids.min() >= 0):
        return np.bincount(ids, rows, count).astype(dtype.np, copy=False)
    out = np.full((count, *rows.shape[1:]), gap, dtype.np)
    order = None
    if ids.size and np.any(ids[1:] < ids[:-1]):
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
    # Sorted, the dropped (negative) ids come first.
    dropped = int(np.searchsorted(ids, 0))
    ids = ids[dropped:]
    if not len(ids):
        return out
    rows = rows[dropped:] if order is None else rows[order[dropped:]]
    starts = _starts(ids)
    out[ids[starts]] = _fold_runs(ufunc, rows, starts, dtype)
    return out


# ---------------------------------------------------------------- picked rows
def _picked(data: Array, indices: Array) -> Array:
    bad = (indices < 0) | (indices >= data.shape[0])
    if bad.any():
        i = int(np.argmax(bad))
        raise checks.invalid(
            f"Bad: indices[{i}] == {int(indices[i])} out of range [0, {data.shape[0]})"
        )
    return data[indices]


def _check_sparse(indices: Array, ids: Array) -> None:
    if indices.ndim != 1:
        raise checks.invalid("indices should be a vector.")
    if ids.ndim != 1:
        raise checks.invalid("segment_ids should be a vector.")
    if len(indices) != len(ids):
        raise checks.invalid("segment_ids and indices should have same size.")


_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@table.binder(*_SPARSE, T=REALS)
@table.binder(*(f"{op}WithNumSegments" for op in _SPARSE), T=REALS, host_inputs=("num_segments",))
def _sparse(sig: NodeSig) -> Callable[..., Array]:
    kind, dtype = (
        sig.op.removesuffix("WithNumSegments").removeprefix("SparseSegment"),
        sig.in_dtypes[0],
    )

    def run(data: Array, indices: Array, ids: Array, num_segments: Any = None) -> Array:
        _check_sparse(indices, ids)
        given = None if num_segments is None else int(num_segments)
        _check_sorted(ids, given)
        last = int(ids[-1]) + 1 if len(ids) else 0
        count = last if given is None else given
        out = np.zeros((count, *data.shape[1:]), dtype.np)
        if not len(ids):
            return out
        starts = _starts(ids)
        folded = _fold_runs(np.add, _picked(data, indices), starts, dtype)
        sizes = np.diff(starts, append=len(ids))
        if kind == "Mean":
            folded = _mean(folded, sizes)
        elif kind == "SqrtN":
            folded = _mean(folded, np.sqrt(sizes))
        out[ids[starts]] = folded
        return out

    return run


@table.binder(
    "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", T=_FLOATS, host_inputs=("output_dim0",)
)
def _sparse_grad(sig: NodeSig) -> Callable[..., Array]:
    by_root = sig.op == "SparseSegmentSqrtNGrad"
    dtype = sig.in_dtypes[0]

    def run(grad: Array, indices: Array, ids: Array, output_dim0: Array) -> Array:
        rows = int(output_dim0)
        if rows and len(ids) and ids[-1] >= grad.shape[0]:
            raise checks.invalid("Invalid number of segments")
        bad = (ids < 0) | (ids >= max(grad.shape[0], 0))
        if bad.any():
            i = int(np.argmax(bad))
            raise checks.invalid(f"Segment id {int(ids[i])} out of range [0, {grad.shape[0]}).")
        outside = (indices < 0) | (indices >= rows)
        if outside.any():
            i = int(np.argmax(outside))
            raise checks.invalid(f"Index {int(indices[i])} out of range [0, {rows}).")
        sizes = np.maximum(np.bincount(ids, minlength=grad.shape[0]), 1).astype(dtype.np)
        scaled = _mean(grad, np.sqrt(sizes) if by_root else sizes)[ids]
        return _unsorted_fold(np.add, scaled, indices, rows, 0, dtype)

    return run
