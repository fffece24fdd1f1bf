"""Portable kernel of histograms; counts of whole numbers are decomposed into segment sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import device_ints, dtype_of, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def bins_of(value_range: Any, nbins: Any) -> tuple[Any, Any, int]:
    """Both ends of a histogram, and its number of bins.

    Raises:
        InvalidArgumentError: the ends are the wrong way round, or there is no bin.
    """
    count = int(nbins)
    if count <= 0:
        raise invalid(f"nbins should be a positive number, but got '{count}'")
    low, high = value_range.tolist()
    if not low < high:
        raise invalid(
            f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
        )
    return low, high, count


@portable("HistogramFixedWidth", host_inputs=("value_range", "nbins"), computes_in=dtypes.float64)
def histogram_fixed_width(xp: Any, sig: NodeSig) -> Any:
    """How many values fall into each of equal bins; what lies outside goes to the ends."""
    element = dtype_of(xp, sig.out_dtypes[0])

    def run(values: Any, value_range: Any, nbins: Any) -> Any:
        low, high, count = bins_of(value_range, nbins)
        step = (float(high) - float(low)) / count
        offsets = xp.astype(xp.reshape(values, (-1,)), xp.float64) - float(low)
        bins = xp.sort(xp.astype(xp.clip(offsets / step, 0.0, float(count - 1)), xp.int64))
        wanted = device_ints(xp, np.arange(count), values)
        ends = xp.searchsorted(bins, wanted, side="right")
        return xp.astype(ends - xp.searchsorted(bins, wanted), element)

    return run
