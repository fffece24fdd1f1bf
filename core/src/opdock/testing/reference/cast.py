"""What conversions between element types give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Cast")
def cast(attrs: Attrs, x: Array) -> Any:
    """Integers lose the fraction, truth is being other than 0, reals lose the imaginary part."""
    target = np.dtype(attrs["DstT"])
    if target.kind == "c":
        return x.astype(np.complex128)
    if x.dtype.kind == "c":
        x = x.real
    if target.kind == "b":
        return x != 0
    if target.kind in "iu":
        return np.trunc(x).astype(np.int64) if x.dtype.kind == "f" else x.astype(np.int64)
    return x.astype(np.float64)


@reference("Bitcast")
def bitcast(attrs: Attrs, x: Array) -> Array:
    """The bytes read anew."""
    source, target = np.dtype(attrs["T"]), np.dtype(attrs["type"])
    data = x.astype(source).tobytes()
    shape = list(x.shape)
    if source.itemsize > target.itemsize:
        shape.append(source.itemsize // target.itemsize)
    elif source.itemsize < target.itemsize:
        shape.pop()
    count = math.prod(shape)
    if not count:
        return np.zeros(shape, target)
    words = np.frombuffer(data, np.uint8).reshape(count, target.itemsize)
    return words.copy().view(target).reshape(shape)
