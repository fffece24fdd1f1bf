"""The oracle for the places of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _arg(x: Array, dimension: Array, better: Callable[[Any, Any], bool]) -> Array:
    axis = int(dimension)
    rows = np.moveaxis(x, axis, -1)
    out = np.zeros(rows.shape[:-1], np.int64)
    for where in np.ndindex(*out.shape):
        best = 0
        for i, value in enumerate(rows[where]):
            if better(value, rows[where][best]):
                best = i
        out[where] = best
    return out


@reference("ArgMax")
def arg_max(attrs: Attrs, x: Array, dimension: Array) -> Array:
    """The first position of the largest element along `dimension`."""
    return _arg(x, dimension, lambda value, best: bool(value > best))


@reference("ArgMin")
def arg_min(attrs: Attrs, x: Array, dimension: Array) -> Array:
    """The first position of the smallest element along `dimension`."""
    return _arg(x, dimension, lambda value, best: bool(value < best))
