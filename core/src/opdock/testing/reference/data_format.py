"""What the ops compute that say one data format in terms of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("DataFormatDimMap")
def dim_map(attrs: Attrs, x: Array) -> Array:
    """The place of each axis' letter in the other format."""
    source, target = attrs["src_format"], attrs["dst_format"]
    out = np.zeros(x.shape, np.int64)
    for index in np.ndindex(*x.shape):
        out[index] = target.index(source[int(x[index])])
    return out


@reference("DataFormatVecPermute")
def vec_permute(attrs: Attrs, x: Array) -> Array:
    """The entry of each letter, in the order of the other format."""
    return np.array([x[attrs["src_format"].index(letter)] for letter in attrs["dst_format"]])
