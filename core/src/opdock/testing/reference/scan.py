"""What the scans compute: running totals along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _scan(
    attrs: Attrs, x: Array, axis: Array, start: Any, step: Callable[[Any, Any], Any]
) -> Array:
    lanes = np.moveaxis(x, int(axis), 0)
    if attrs["reverse"]:
        lanes = lanes[::-1]
    out = np.empty_like(lanes)
    total = np.full(lanes.shape[1:], start, x.dtype)
    for i, value in enumerate(lanes):
        after = step(total, value)
        out[i] = total if attrs["exclusive"] else after
        total = after
    if attrs["reverse"]:
        out = out[::-1]
    return np.moveaxis(out, 0, int(axis))


@reference("Cumsum")
def cumsum(attrs: Attrs, x: Array, axis: Array) -> Array:
    """Running sums; `exclusive` leaves out the element itself, `reverse` runs from the end."""
    return _scan(attrs, x, axis, 0, lambda total, value: total + value)


@reference("Cumprod")
def cumprod(attrs: Attrs, x: Array, axis: Array) -> Array:
    """Running products."""
    return _scan(attrs, x, axis, 1, lambda total, value: total * value)


@reference("CumulativeLogsumexp")
def cumulative_logsumexp(attrs: Attrs, x: Array, axis: Array) -> Array:
    """Running log(sum(exp)); nothing gives the lowest number of the type."""
    out = _scan(attrs, x, axis, -np.inf, np.logaddexp)
    lowest = np.finfo(attrs["T"]).min
    return np.asarray(np.maximum(out, lowest))
