"""Dimensions in another order, where what stays together is small."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["turned"]

_WORDS: Final = {
    dtype.itemsize: dtype for dtype in map(np.dtype, ("uint16", "uint32", "uint64", "complex128"))
}
"""Element types by size, whose elements NumPy moves in about a nanosecond."""

Array = np.ndarray[Any, Any]


def turned(x: Array, order: tuple[int, ...]) -> Array:
    """The dimensions of an array in another order, as portable kernels ask it.

    NumPy copies a view piece by piece, of which each takes 4 ns to begin with, as much as moving
    many elements does. A small piece that stays together is moved as one element instead.

    Args:
        x: an array.
        order: which of its dimensions each of the result's is.
    """
    last = x.ndim - 1
    piece = x.shape[-1] * x.itemsize
    whole = order[-1] == last and x.shape[-1] > 1 and x.flags.c_contiguous
    if not whole or piece not in _WORDS or x.dtype.hasobject:
        return x.transpose(order)
    wide = x.view(_WORDS[piece]).transpose(order)
    return np.ascontiguousarray(wide).view(x.dtype)
