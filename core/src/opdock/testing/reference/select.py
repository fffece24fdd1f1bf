"""What selection by condition gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Where")
def where(attrs: Attrs, condition: Array) -> Array:
    """The coordinates of what is not zero, in row-major order."""
    found = [place for place in np.ndindex(*condition.shape) if condition[place]]
    return np.array(found, np.int64).reshape(len(found), condition.ndim)


@reference("OneHot")
def one_hot(attrs: Attrs, indices: Array, depth: Array, on: Array, off: Array) -> Array:
    """`on` where the index says, `off` everywhere else."""
    at = indices.ndim if attrs["axis"] == -1 else attrs["axis"]
    lengths = list(indices.shape)
    lengths.insert(at, int(depth))
    out = np.empty(lengths, on.dtype)
    for place in np.ndindex(*lengths):
        index = indices[place[:at] + place[at + 1 :]]
        out[place] = on[()] if place[at] == index else off[()]
    return out
