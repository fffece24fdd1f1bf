"""Oracle of rows that are replaced, raised or lowered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


@reference("InplaceUpdate")
def inplace_update(attrs: Attrs, x: Array, i: Array, v: Array) -> Array:
    """Row by row."""
    out = x.copy()
    for row, value in zip(i, v, strict=True):
        out[row % len(x)] = value
    return out


@reference("InplaceAdd")
def inplace_add(attrs: Attrs, x: Array, i: Array, v: Array) -> Array:
    """Row by row."""
    out = x.copy()
    for row, value in zip(i, v, strict=True):
        out[row % len(x)] = out[row % len(x)] + value
    return out


@reference("InplaceSub")
def inplace_sub(attrs: Attrs, x: Array, i: Array, v: Array) -> Array:
    """Row by row."""
    out = x.copy()
    for row, value in zip(i, v, strict=True):
        out[row % len(x)] = out[row % len(x)] - value
    return out


@reference("DeepCopy")
def deep_copy(attrs: Attrs, x: Array) -> Array:
    """The same."""
    return x.copy()


@reference("Empty")
def empty(attrs: Attrs, shape: Array) -> Array:
    """Zeros, and empty strings."""
    dtype = np.dtype(attrs["dtype"])
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)
