"""Counting: in bins of one width by a generated loop, others on NumPy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, checks, dtypes
from opdock_cpu.jit.looped import Array, Looped, double

__all__ = ["table"]

table = KernelTable()

_SPOTS: Final = 512
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


def _tally(
    begin: int, end: int, counts: Array, wrong: Array, spots: Array, values: Array,
    size: int, bins: int, low: float, step: float,
) -> None:  # fmt: skip
    """How many values are in each bin, and how many in none."""
    for turn in range(begin, end):
        bad = 0
        # The bins of some values first, which is done in vectors, then their counts.
        for block in range((size + _SPOTS - 1) // _SPOTS):
            first = block * _SPOTS
            last = min(first + _SPOTS, size)
            for i in range(first, last):
                place = min(max(double(values[i]) - low, 0.0) / step, double(bins - 1))
                spots[i - first] = int(place) if place >= 0 else -1
            for i in range(last - first):
                if spots[i] >= 0:
                    counts[spots[i]] += 1
                else:
                    bad += 1
        wrong[turn] = bad


_TALLY: Final = Looped(_tally)


@table.kernel("HistogramFixedWidth", T=_TYPES, host_inputs=("nbins",))
def _histogram(ctx: Any, values: Array, value_range: Array, nbins: Array) -> Array:
    low, high, count = checks.bins_of(value_range, nbins)
    step = (float(high) - float(low)) / count
    counts, wrong, spots = (np.zeros(n, np.int64) for n in (count, 1, _SPOTS))
    numbers = (values.size, count, float(low), step)
    if _TALLY(1, values.size, counts, wrong, spots, values, *numbers) and not wrong[0]:
        return counts.astype(ctx.sig.out_dtypes[0].np)
    offsets = np.maximum(np.ravel(values), value_range[0]).astype(np.float64) - float(low)
    bins = np.minimum(offsets / step, count - 1).astype(np.int64)
    return np.bincount(bins, minlength=count).astype(ctx.sig.out_dtypes[0].np)
