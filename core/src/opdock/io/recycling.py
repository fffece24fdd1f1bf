"""Memory that is used again once nobody holds it: fresh pages cost more than filling them."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["Recycled"]

_ALONE: Final = 2
"""References to an array that only a list has: the list's, and the argument that asks."""


class Recycled:
    """Arrays of one size or a few, given out again when whoever had them let go of them.

    A view holds the array that it looks into, so an array without other references is free. One
    thread at a time asks.

    Args:
        count: how many arrays are remembered. More may be in use; those are the system's again
            when they are let go of.
        least, most: bytes of the arrays for which it pays.
    """

    def __init__(self, count: int, least: int, most: int) -> None:
        self._least, self._most = least, most
        self._held: deque[npt.NDArray[np.uint8]] = deque(maxlen=count)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> npt.NDArray[Any]:
        """An array of any content that nobody else looks at."""
        element = np.dtype(dtype)
        size = element.itemsize
        for length in shape:
            size *= length
        if element.hasobject or not self._least <= size <= self._most:
            return np.empty(shape, element)
        held = self._held
        for i in range(len(held)):
            if held[i].nbytes == size and sys.getrefcount(held[i]) <= _ALONE:
                return held[i].view(element).reshape(shape)
        held.append(np.empty(size, np.uint8))
        return held[-1].view(element).reshape(shape)
