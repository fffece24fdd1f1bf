"""The oracle for sums of several tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("AddN", "AccumulateNV2")
def add_n(attrs: Attrs, inputs: Sequence[Array]) -> Any:
    """The sum of a list."""
    return functools.reduce(np.add, inputs)


@reference("Cross")
def cross(attrs: Attrs, a: Array, b: Array) -> Array:
    """The cross product of the rows."""
    out = np.zeros(a.shape, a.dtype)
    for place in np.ndindex(a.shape[:-1]):
        (x, y, z), (u, v, w) = a[place], b[place]
        out[place] = [y * w - z * v, z * u - x * w, x * v - y * u]
    return out
