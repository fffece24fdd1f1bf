"""Counting: in bins of one width by a generated loop, others on NumPy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, checks, dtypes
from opdock_cpu.jit.looped import Array, Looped, double

__all__ = ["table"]

table = KernelTable()

_SHARES: Final = 8
"""Counts of their own that many values have, for as many threads."""
_SPOTS: Final = 512
_TYPES = frozenset({dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64})


def _count(
    begin: int, end: int, counts: Array, wrong: Array, values: Array, size: int, bins: int,
    shares: int,
) -> None:  # fmt: skip
    """A turn is one of `shares` shares of the values, with counts of its own."""
    for t in range(begin, end):
        bad = 0
        for i in range(size * t // shares, size * (t + 1) // shares):
            value = int(values[i])
            if value < 0:
                bad += 1
            elif value < bins:
                counts[t * bins + value] += 1
        wrong[t] = bad


def _add_up(
    begin: int, end: int, sums: Array, wrong: Array, values: Array, weights: Array, size: int,
    bins: int,
) -> None:  # fmt: skip
    """The sum of the weights of each value, one after the other."""
    for t in range(begin, end):
        bad = 0
        for i in range(size):
            value = int(values[i])
            if value < 0:
                bad += 1
            elif value < bins:
                sums[value] += weights[i]
        wrong[t] = bad


_COUNT: Final = Looped(_count)
_ADD_UP: Final = Looped(_add_up)


@table.kernel("Bincount", T=_TYPES, host_inputs=("size",))
def _bincount(ctx: Any, arr: Array, size: Array, weights: Array) -> Array:
    count, dtype = checks.bin_count(size), ctx.sig.out_dtypes[0].np
    found = _counted(arr, count, weights, dtype)
    if found is not None:
        return found
    values = np.ravel(arr)
    checks.check_counted(arr, values.min(initial=0), weights)
    kept = values < count
    if not weights.size:
        return np.bincount(values[kept], minlength=count)[:count].astype(dtype)
    out = np.zeros(count, dtype)
    np.add.at(out, values[kept], np.ravel(weights)[kept])
    return out


def _counted(arr: Array, count: int, weights: Array, dtype: Any) -> Array | None:
    """By a loop; None without one, or where something is wrong."""
    if weights.size and weights.shape != arr.shape:
        return None
    # What the shares are depends on the sizes alone, and only whole numbers are added up.
    shares = 1 if weights.size or count * _SHARES * 4 > arr.size else _SHARES
    wrong = np.zeros(shares, np.int64)
    if weights.size:
        sums = np.zeros(count, dtype)
        done = _ADD_UP(1, 2 * arr.size, sums, wrong, arr, weights, arr.size, count)
        return sums if done and not wrong.any() else None
    counts = np.zeros((shares, count), np.int64)
    done = _COUNT(shares, 2 * arr.size, counts, wrong, arr, arr.size, count, shares)
    return counts.sum(axis=0).astype(dtype) if done and not wrong.any() else None


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
