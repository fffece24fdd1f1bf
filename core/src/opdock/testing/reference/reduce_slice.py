"""What the reductions of ranges of rows compute."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _reduced(data: Array, indices: Array, axis: Array, fold: Callable[..., Any], least: Any) -> Any:
    rows = np.moveaxis(data, int(axis), 0)
    if indices.ndim == 1:
        pairs = list(pairwise(indices))
    else:
        pairs = [(first, last) for first, last in indices]
    out = np.full((len(pairs), *rows.shape[1:]), least, data.dtype)
    for i, (first, last) in enumerate(pairs):
        for row in range(first, min(int(last), len(rows))):
            out[i] = fold(out[i], rows[row])
    return np.moveaxis(out, 0, int(axis))


def _limit(dtype: Any, sign: int) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
    return sign * np.inf


@reference("ReduceSliceSum")
def reduce_slice_sum(attrs: Attrs, data: Array, indices: Array, axis: Array) -> Array:
    """Sums; 0 for a range without rows."""
    return np.asarray(_reduced(data, indices, axis, np.add, 0))


@reference("ReduceSliceProd")
def reduce_slice_prod(attrs: Attrs, data: Array, indices: Array, axis: Array) -> Array:
    """Products; 1 for a range without rows."""
    return np.asarray(_reduced(data, indices, axis, np.multiply, 1))


@reference("ReduceSliceMax")
def reduce_slice_max(attrs: Attrs, data: Array, indices: Array, axis: Array) -> Array:
    """Maxima; the least number for a range without rows."""
    return np.asarray(_reduced(data, indices, axis, np.maximum, _limit(data.dtype, -1)))


@reference("ReduceSliceMin")
def reduce_slice_min(attrs: Attrs, data: Array, indices: Array, axis: Array) -> Array:
    """Minima; the largest number for a range without rows."""
    return np.asarray(_reduced(data, indices, axis, np.minimum, _limit(data.dtype, 1)))
