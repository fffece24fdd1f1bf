"""What the reductions compute: gather the reduced elements of each output, fold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _fold(
    attrs: Attrs, x: Array, indices: Array, fold: Callable[[Array], Any], dtype: Any
) -> Array:
    """Applies `fold` to the vector of elements behind every output position."""
    reduced = sorted({int(axis) % x.ndim for axis in np.ravel(indices)})
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    rows = x.transpose(kept + reduced)
    count = math.prod(x.shape[axis] for axis in reduced)
    rows = rows.reshape(math.prod(x.shape[axis] for axis in kept), count)
    out = np.array([fold(row) for row in rows], dtype=dtype)
    if attrs["keep_dims"]:
        return out.reshape([1 if axis in reduced else n for axis, n in enumerate(x.shape)])
    return out.reshape([x.shape[axis] for axis in kept])


@reference("Sum")
def sum_(attrs: Attrs, x: Array, indices: Array) -> Array:
    """The sum; 0 of nothing."""
    return _fold(attrs, x, indices, np.sum, x.dtype)


@reference("Prod")
def prod(attrs: Attrs, x: Array, indices: Array) -> Array:
    """The product; 1 of nothing."""
    return _fold(attrs, x, indices, np.prod, x.dtype)


@reference("Mean")
def mean(attrs: Attrs, x: Array, indices: Array) -> Array:
    """The mean; whole numbers divide as in C, toward zero; NaN of nothing."""

    def fold(row: Array) -> Any:
        if row.dtype.kind != "i":
            return row.sum() / len(row) if len(row) else math.nan
        total = int(row.sum())
        return math.copysign(1, total) * (abs(total) // len(row)) if len(row) else 0

    return _fold(attrs, x, indices, fold, x.dtype)


@reference("Max")
def max_(attrs: Attrs, x: Array, indices: Array) -> Array:
    """The largest; NaN when any is NaN; minus infinity of nothing."""
    return _fold(attrs, x, indices, lambda row: np.max(row) if len(row) else -math.inf, x.dtype)


@reference("Min")
def min_(attrs: Attrs, x: Array, indices: Array) -> Array:
    """The smallest; NaN when any is NaN; infinity of nothing."""
    return _fold(attrs, x, indices, lambda row: np.min(row) if len(row) else math.inf, x.dtype)


@reference("EuclideanNorm")
def euclidean_norm(attrs: Attrs, x: Array, indices: Array) -> Array:
    """The root of the sum of squared magnitudes; whole numbers drop the fraction."""
    if not len(np.reshape(indices, -1)):
        return x

    def fold(row: Array) -> Any:
        return math.sqrt(sum(abs(value) ** 2 for value in row))

    return _fold(attrs, x, indices, fold, np.float64)


@reference("All")
def all_(attrs: Attrs, x: Array, indices: Array) -> Array:
    """Whether every element is true; true of nothing."""
    return _fold(attrs, x, indices, np.all, np.bool_)


@reference("Any")
def any_(attrs: Attrs, x: Array, indices: Array) -> Array:
    """Whether some element is true; false of nothing."""
    return _fold(attrs, x, indices, np.any, np.bool_)
