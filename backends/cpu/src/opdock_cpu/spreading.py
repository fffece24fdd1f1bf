"""Arrays repeated along dimensions: long runs are copied where NumPy would move a few elements.

NumPy walks the last dimension in its inner loop, which costs some nanoseconds to start. Where that
has a few elements, those that belong together are first repeated into a block; or the copies are
made one by one, each with a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

__all__ = ["spread"]

Array = np.ndarray[Any, Any]

_SHORT: Final = 256
"""Bytes that are too few for a loop of their own."""
_BLOCK: Final = 1 << 14
"""Bytes of a block that is repeated as a whole: it stays in the nearest cache."""
_COPIES: Final = 16
"""Copies of each element that are made one by one."""


def spread(out: Array, source: Array) -> None:
    """Fills an array with another one that broadcasts to its shape.

    Args:
        out: in one piece.
        source: of its type.
    """
    sizes, repeated = _merged(out.shape, source.shape)
    source = source.reshape([1 if r else n for n, r in zip(sizes, repeated, strict=True)])
    out = out.reshape(sizes)
    if len(sizes) < 2 or not out.size:
        out[...] = source
    elif repeated[-1]:
        _each(out, source)
    elif sizes[-1] * out.itemsize < _SHORT:
        _rows(out, source)
    else:
        out[...] = source


def _merged(shape: Sequence[int], source: Sequence[int]) -> tuple[list[int], list[bool]]:
    """Sizes with neighbours of one kind as one dimension, and whether each is repeated."""
    sizes: list[int] = []
    repeated: list[bool] = []
    for n, own in zip(shape, (*(1,) * (len(shape) - len(source)), *source), strict=True):
        if n == 1:
            continue
        if sizes and repeated[-1] == (own == 1):
            sizes[-1] *= n
        else:
            sizes.append(n)
            repeated.append(own == 1)
    return sizes, repeated


def _each(out: Array, source: Array) -> None:
    """The last dimension repeats single elements."""
    if out.shape[-1] > _COPIES:
        out[...] = source
        return
    for i in range(out.shape[-1]):
        out[..., i] = source[..., 0]


def _rows(out: Array, source: Array) -> None:
    """The last dimension but one repeats short rows."""
    *outer, count, width = out.shape
    out = out.reshape(math.prod(outer), count, width)
    out[:, :1] = np.broadcast_to(source, (*outer, 1, width)).reshape(-1, 1, width)
    block = min(count, max(1, _BLOCK // (width * out.itemsize)))
    have = 1
    while have < block:
        more = min(have, block - have)
        out[:, have : have + more] = out[:, :more]
        have += more
    whole = count // block * block
    if whole > block:
        rest = out[:, block:whole].reshape(len(out), -1, block * width)
        assert np.shares_memory(rest, out)
        rest[...] = out[:, :block].reshape(len(out), 1, -1)
    out[:, whole:] = out[:, : count - whole]
