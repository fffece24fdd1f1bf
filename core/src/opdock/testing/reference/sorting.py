"""What the ops of order compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _largest(x: Array, k: int) -> tuple[Array, Array]:
    """By value, and of equal values by index."""
    values = np.empty((*x.shape[:-1], k), x.dtype)
    indices = np.empty((*x.shape[:-1], k), np.int64)
    for row in np.ndindex(*x.shape[:-1]):
        order = sorted(range(x.shape[-1]), key=lambda i, row=row: (-x[row][i], i))[:k]  # type: ignore[misc]
        values[row] = [x[row][i] for i in order]
        indices[row] = order
    return values, indices


@reference("TopKV2")
def top_k_v2(attrs: Attrs, x: Array, k: Array) -> tuple[Array, Array]:
    """The largest of each row and where they are."""
    return _largest(x, int(k))


@reference("TopK")
def top_k(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    """The largest of each row and where they are."""
    return _largest(x, attrs["k"])


@reference("NthElement")
def nth_element(attrs: Attrs, x: Array, n: Array) -> Array:
    """The element at a place of each sorted row."""
    out = np.empty(x.shape[:-1], x.dtype)
    for row in np.ndindex(*x.shape[:-1]):
        out[row] = sorted(x[row], reverse=attrs["reverse"])[int(n)]
    return out


@reference("LowerBound")
def lower_bound(attrs: Attrs, rows: Array, values: Array) -> Array:
    """How many elements of the row are smaller."""
    out = np.zeros(values.shape, np.int64)
    for i, j in np.ndindex(*values.shape):
        out[i, j] = sum(1 for v in rows[i] if v < values[i, j])
    return out


@reference("UpperBound")
def upper_bound(attrs: Attrs, rows: Array, values: Array) -> Array:
    """How many elements of the row are not larger."""
    out = np.zeros(values.shape, np.int64)
    for i, j in np.ndindex(*values.shape):
        out[i, j] = sum(1 for v in rows[i] if not values[i, j] < v)
    return out
