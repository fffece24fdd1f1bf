"""What the ops compute that make tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Fill")
def fill(attrs: Attrs, dims: Array, value: Array) -> Array:
    """The value in every place."""
    out = np.empty([int(d) for d in dims], value.dtype)
    for place in np.ndindex(*out.shape):
        out[place] = value[()]
    return out


@reference("ZerosLike")
def zeros_like(attrs: Attrs, x: Array) -> Array:
    """Zero, False or the empty string in every place."""
    return np.full(x.shape, b"" if x.dtype.kind in "OSU" else 0, x.dtype)


@reference("OnesLike")
def ones_like(attrs: Attrs, x: Array) -> Array:
    """One or True in every place."""
    return np.full(x.shape, 1, x.dtype)


@reference("Range")
def range_(attrs: Attrs, start: Array, limit: Array, delta: Array) -> Array:
    """Start, start + delta, start + 2 delta ... as long as the limit is not reached."""
    out: list[Any] = []
    while True:
        value = start + len(out) * delta
        if value >= limit if delta > 0 else value <= limit:
            return np.array(out, start.dtype)
        out.append(value)


@reference("LinSpace")
def lin_space(attrs: Attrs, start: Array, stop: Array, num: Array) -> Array:
    """Both ends, and the points that cut the way between them into equal steps."""
    n = int(num)
    if n == 1:
        return np.array([start], np.float64)
    return np.array([start + (stop - start) * i / (n - 1) for i in range(n)], np.float64)
