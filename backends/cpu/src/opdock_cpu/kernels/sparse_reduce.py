"""Reductions of sparse tensors: cells are sorted by what is left of their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opdock.plugin import NUMBERS, REALS, DType, KernelTable, NodeSig, cells, checks, dtypes

__all__ = ["table"]

Array = cells.Array
dims = checks.dims

table = KernelTable()

_HALVES = (dtypes.float16, dtypes.bfloat16)


class _Reduced(NamedTuple):
    """Folded cells.

    Attributes:
        indices: their coordinates along the dimensions that are left [n, kept].
        values: one value each.
        kept: the dimensions that are left.
    """

    indices: Array
    values: Array
    kept: list[int]


def _reduce(
    ufunc: np.ufunc, dtype: DType, indices: Array, values: Array, shape: Array, axes: Array
) -> _Reduced:
    _check(shape, axes)
    cells.check_parts(indices, values, shape)
    cells.check_inside(indices, cells.sizes(shape))
    gone = {int(axis) % len(shape) for axis in axes.reshape(-1)}
    kept = [i for i in range(len(shape)) if i not in gone]
    left = indices[:, kept]
    if not len(values):
        return _Reduced(left, values, kept)
    order, starts = cells.runs(cells.keys(left))
    wide = values.astype(np.float32) if dtype in _HALVES and ufunc is np.add else values
    folded = ufunc.reduceat(wide[order], starts, 0, wide.dtype).astype(dtype.np, copy=False)
    return _Reduced(left[order[starts]], folded, kept)


def _check(shape: Array, axes: Array) -> None:
    if shape.ndim != 1:
        raise checks.invalid(f"Expected input_shape to be a vector; got shape: {dims(shape.shape)}")
    if axes.ndim > 1:
        raise checks.invalid(
            "Expected reduction_axes to be a scalar or a vector; got shape: " + dims(axes.shape)
        )
    for axis in axes.reshape(-1):
        if not -len(shape) <= axis < len(shape):
            raise checks.invalid(
                f"Invalid reduction dimension {axis}, for input with {len(shape)} dimensions."
            )


def _ufunc(sig: NodeSig) -> np.ufunc:
    return np.add if "Sum" in sig.op else np.maximum


@table.binder("SparseReduceSum", T=NUMBERS, host_inputs=("input_shape", "reduction_axes"))
@table.binder("SparseReduceMax", T=REALS, host_inputs=("input_shape", "reduction_axes"))
def sparse_reduce(sig: NodeSig) -> Callable[..., Array]:
    """The fold as a dense tensor, zero where there is no cell."""
    ufunc, keep, dtype = _ufunc(sig), bool(sig.attrs["keep_dims"]), sig.in_dtypes[1].base_dtype

    def run(indices: Array, values: Array, shape: Any, axes: Any) -> Array:
        shape, axes = np.asarray(shape), np.asarray(axes)
        found = _reduce(ufunc, dtype, indices, values, shape, axes)
        left = tuple(int(shape[i]) for i in found.kept)
        out = np.zeros(left, dtype.np)
        out.reshape(-1)[cells.flat(found.indices, left)] = found.values
        return out.reshape(_whole(shape, found.kept)) if keep else out

    return run


def _whole(shape: Array, kept: list[int]) -> list[int]:
    return [int(n) if i in kept else 1 for i, n in enumerate(shape)]


@table.binder("SparseReduceSumSparse", T=NUMBERS, host_inputs=("input_shape", "reduction_axes"))
@table.binder("SparseReduceMaxSparse", T=REALS, host_inputs=("input_shape", "reduction_axes"))
def sparse_reduce_sparse(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The fold as a sparse tensor."""
    ufunc, keep, dtype = _ufunc(sig), bool(sig.attrs["keep_dims"]), sig.in_dtypes[1].base_dtype

    def run(indices: Array, values: Array, shape: Any, axes: Any) -> tuple[Array, Array, Array]:
        shape, axes = np.asarray(shape), np.asarray(axes)
        found = _reduce(ufunc, dtype, indices, values, shape, axes)
        if not keep:
            return found.indices, found.values, shape[found.kept]
        whole = np.zeros((len(found.values), len(shape)), np.int64)
        whole[:, found.kept] = found.indices
        return whole, found.values, np.array(_whole(shape, found.kept), np.int64)

    return run
