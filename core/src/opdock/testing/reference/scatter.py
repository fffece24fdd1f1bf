"""What scattering leaves at the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _scatter(out: Array, indices: Array, updates: Array, merge: Callable[[Any, Any], Any]) -> Array:
    """One update after the other."""
    for place in np.ndindex(*indices.shape[:-1]):
        where = tuple(int(i) for i in indices[place])
        out[where] = merge(out[where], updates[place])
    return out


@reference("ScatterNd")
def scatter_nd(attrs: Attrs, indices: Array, updates: Array, shape: Array) -> Array:
    """Added to zeros, or to empty strings."""
    zero = b"" if updates.dtype == object else 0
    zeros = np.full([int(d) for d in shape], zero, updates.dtype)
    return _scatter(zeros, indices, updates, lambda old, new: old + new)


@reference("TensorScatterUpdate")
def update(attrs: Attrs, x: Array, indices: Array, updates: Array) -> Array:
    """Put in the place of the old values."""
    return _scatter(x.copy(), indices, updates, lambda old, new: new)


@reference("TensorScatterAdd", "ScatterNdNonAliasingAdd")
def add(attrs: Attrs, x: Array, indices: Array, updates: Array) -> Array:
    """Added to the old values."""
    return _scatter(x.copy(), indices, updates, lambda old, new: old + new)


@reference("TensorScatterSub")
def subtract(attrs: Attrs, x: Array, indices: Array, updates: Array) -> Array:
    """Subtracted from the old values."""
    return _scatter(x.copy(), indices, updates, lambda old, new: old - new)


@reference("TensorScatterMin")
def minimum(attrs: Attrs, x: Array, indices: Array, updates: Array) -> Array:
    """The smaller of old and new."""
    return _scatter(x.copy(), indices, updates, np.minimum)


@reference("TensorScatterMax")
def maximum(attrs: Attrs, x: Array, indices: Array, updates: Array) -> Array:
    """The larger of old and new."""
    return _scatter(x.copy(), indices, updates, np.maximum)
