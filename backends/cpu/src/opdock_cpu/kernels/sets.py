"""Differences of vectors of any type, and the different slices of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, checks
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()


@table.binder("ListDiff")
def list_diff(sig: NodeSig) -> Callable[..., Any]:
    """The elements of `x` that are not in `y`, and where they are."""
    index_type = sig.out_dtypes[1].np

    def run(x: Any, y: Any) -> Any:
        for name, value in (("x", x), ("y", y)):
            if np.ndim(value) != 1:
                raise checks.invalid(
                    f"{name} should be a 1D vector, got shape {list(np.shape(value))}"
                )
        if x.dtype.hasobject:
            other = set(y.tolist())
            kept = np.array([i for i, v in enumerate(x.tolist()) if v not in other], index_type)
        else:
            kept = np.flatnonzero(np.isin(x, y, invert=True)).astype(index_type)
        return x[kept], kept

    return run


@table.binder("UniqueV2", "UniqueWithCountsV2", T=REALS, host_inputs=("axis",))
def unique_v2(sig: NodeSig) -> Callable[..., Any]:
    """The different slices along a dimension, found by their bytes."""
    plain: Callable[..., Any] = portable_kernel(sig)
    n, dtype = len(sig.out_dtypes), sig.out_dtypes[1].np

    def run(x: Any, axis: Any) -> Any:
        given = checks.ints(axis)
        # What is no number equals nothing, itself included, whatever its bytes are.
        if x.ndim < 2 or len(given) != 1 or not -x.ndim <= given[0] < x.ndim or np.isnan(x).any():
            return plain(x, axis)
        first, index = _first_of_each(np.moveaxis(x, given[0], 0))
        count = np.bincount(index, minlength=len(first)).astype(dtype)
        return (np.take(x, first, axis=given[0]), index.astype(dtype), count)[:n]

    return run


def _first_of_each(slices: Any) -> tuple[list[int], Any]:
    """Where each different slice stands first, and which of them each slice is."""
    # Zeros of both signs are equal: adding one leaves a single one of them.
    same = slices + slices.dtype.type(0)
    step = same.nbytes // max(len(same), 1)
    data, found = same.tobytes(), dict[bytes, int]()
    index = np.empty(len(same), np.int64)
    first: list[int] = []
    for i in range(len(same)):
        index[i] = place = found.setdefault(data[i * step : (i + 1) * step], len(found))
        if place == len(first):
            first.append(i)
    return first, index
