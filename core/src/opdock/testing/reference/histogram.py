"""What the counting ops compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Bincount")
def bincount(attrs: Attrs, values: Array, size: Array, weights: Array) -> Array:
    """How often (or with what total weight) each number of [0, size) occurs; others are dropped."""
    bins = np.zeros(int(size), weights.dtype)
    for position, value in enumerate(values.ravel()):
        if value < len(bins):
            bins[value] += weights.ravel()[position] if weights.size else 1
    return bins


@reference("HistogramFixedWidth")
def histogram_fixed_width(attrs: Attrs, values: Array, value_range: Array, nbins: Array) -> Array:
    """Counts per equal-width bin; values outside the range count in the first or last bin."""
    low, high = value_range
    counts = np.zeros(int(nbins), np.int64)
    for value in values.ravel():
        place = np.floor((float(value) - low) / (high - low) * len(counts))
        counts[int(np.clip(place, 0, len(counts) - 1))] += 1
    return counts
