"""Counting on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, checks, dtypes

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_TYPES = frozenset({dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64})


@table.kernel("Bincount", T=_TYPES, host_inputs=("size",))
def _bincount(ctx: Any, arr: Array, size: Array, weights: Array) -> Array:
    count, values = checks.bin_count(size), np.ravel(arr)
    checks.check_counted(arr, values.min(initial=0), weights)
    kept = values < count
    dtype = ctx.sig.out_dtypes[0].np
    if not weights.size:
        return np.bincount(values[kept], minlength=count)[:count].astype(dtype)
    out = np.zeros(count, dtype)
    np.add.at(out, values[kept], np.ravel(weights)[kept])
    return out


@table.kernel("HistogramFixedWidth", T=_TYPES, host_inputs=("nbins",))
def _histogram(ctx: Any, values: Array, value_range: Array, nbins: Array) -> Array:
    low, high, count = checks.bins_of(value_range, nbins)
    step = (float(high) - float(low)) / count
    offsets = np.maximum(np.ravel(values), value_range[0]).astype(np.float64) - float(low)
    bins = np.minimum(offsets / step, count - 1).astype(np.int64)
    return np.bincount(bins, minlength=count).astype(ctx.sig.out_dtypes[0].np)
