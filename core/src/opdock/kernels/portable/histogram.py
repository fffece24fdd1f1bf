"""Portable kernel of histograms; counts of whole numbers are decomposed into segment sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import device_ints, dtype_of, ints, invalid
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


def bin_count(size: Any) -> int:
    """How many bins whole numbers are counted in.

    Raises:
        InvalidArgumentError: fewer than none.
    """
    (count,) = ints(size)
    if count < 0:
        raise invalid(f"size ({count}) must be non-negative")
    return count


def check_counted(arr: Any, least: int, weights: Any) -> None:
    """Raises InvalidArgumentError unless numbers can be counted, with a weight each if any.

    Args:
        arr: the numbers.
        least: the least of them; 0 where there is none.
        weights: of the numbers, or an empty array.
    """
    if least < 0:
        raise invalid("Input arr must be non-negative!")
    if 0 not in weights.shape and tuple(weights.shape) != tuple(arr.shape):
        raise invalid("arr and weights must have the same shape if weights is not empty")


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
