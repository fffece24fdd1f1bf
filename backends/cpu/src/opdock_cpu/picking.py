"""Elements and rows picked by coordinates, and places of coordinates, as generated loops.

One pass looks at each coordinate, finds whether it is inside, and moves what stands there. In NumPy
each of that is a pass over all coordinates, or several, on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["MANY", "picked", "places", "taken"]

MANY: Final = 1 << 13
"""Elements for which loops are quicker than NumPy."""
_BLOCK: Final = 1 << 11
"""Elements of a turn."""
_SHORT: Final = 4
"""Elements of rows of which the code says how long they are."""
_BITS: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64, 16: np.int64}
_LIMIT: Final = 2**63 - 1
"""The last place of a flat tensor."""


# ---------------------------------------------------------------- loops
def _pick(
    begin: int, end: int, out: Array, wrong: Array, source: Array, indices: Array, sizes: Array,
    steps: Array, count: int, block: int, blocks: int, span: int, depth: int, width: int,
) -> None:  # fmt: skip
    """A turn is a block of rows of one part of the source; of those outside there is an element.

    `wrong` says how many of them there are in each turn.
    """
    for t in range(begin, end):
        part, bad = t // blocks, 0
        first = t % blocks * block
        for i in range(first, min(first + block, count)):
            place, outside = 0, 0
            for c in range(depth):
                at = int(indices[i * depth + c])
                outside += 1 if (at < 0) | (at >= sizes[c]) else 0
                place += at * steps[c]
            bad += outside
            place = place if outside == 0 else 0
            to, row = (part * count + i) * width, part * span + place
            for k in range(width):
                out[to + k] = source[row + k]
        wrong[t] = bad


def _place(
    begin: int, end: int, out: Array, wrong: Array, indices: Array, sizes: Array, count: int,
    depth: int, ordered: int,
) -> None:  # fmt: skip
    """A turn is a block of coordinates; `wrong` counts those that are outside, or out of order."""
    for t in range(begin, end):
        first, bad, before = t * _BLOCK, 0, -1
        if ordered > 0 and t > 0:
            before = 0
            for c in range(depth):
                before = before * sizes[c] + int(indices[(first - 1) * depth + c])
        for i in range(first, min(first + _BLOCK, count)):
            place = 0
            for c in range(depth):
                at = int(indices[i * depth + c])
                bad += 1 if (at < 0) | (at >= sizes[c]) else 0
                place = place * sizes[c] + at
            out[i] = place
            if ordered > 0:
                bad += 1 if place <= before else 0
                before = place
        wrong[t] = bad


_PICK: Final = Looped(_pick, fixed=("depth",))
_PICK_SHORT: Final = Looped(_pick, fixed=("depth", "width"))
_PLACE: Final = Looped(_place, fixed=("depth", "ordered"))


# ---------------------------------------------------------------- arrays
def places(indices: Array, shape: Sequence[int], ordered: bool = False) -> Array | None:
    """Where coordinates [n, depth] are in a flat tensor; None without code, or if one is outside.

    Args:
        indices: whole numbers.
        shape: the sizes of as many dimensions.
        ordered: whether None is given, too, where one does not stand behind the one before it.
    """
    count, depth = indices.shape
    if not indices.size or not 0 < math.prod(shape) <= _LIMIT or min(shape) < 0:
        return None
    turns = -(-count // _BLOCK)
    out, wrong = np.empty(count, np.int64), np.empty(turns, np.int64)
    sizes = np.array(shape, np.int64)
    if not _PLACE(turns, indices.size, out, wrong, indices, sizes, count, depth, int(ordered)):
        return None
    return None if wrong.any() else out


def picked(
    source: Array, indices: Array, sizes: Sequence[int], steps: Sequence[int], width: int,
    out: Array | None = None, parts: int = 1,
) -> Array | None:  # fmt: skip
    """Rows at coordinates; None without code, or where a coordinate is outside.

    Args:
        source: a contiguous array that is not empty.
        indices: coordinates [n, depth].
        sizes: how many there are of each coordinate.
        steps: how many elements of the source lie between neighbours along each.
        width: how many elements a row has.
        out: where the rows go.
        parts: of how many equal parts of the source the same rows are picked.

    Returns:
        A flat array of rows, those of each part together.
    """
    count, depth = indices.shape
    bits = _BITS.get(source.dtype.itemsize)
    if bits is None or source.dtype.hasobject or not source.flags.c_contiguous or not indices.size:
        return None
    if out is not None and not out.flags.c_contiguous:
        return None
    out = np.empty(parts * count * width, source.dtype) if out is None else out.reshape(-1)
    words = source.dtype.itemsize // np.dtype(bits).itemsize
    given = source.reshape(-1).view(bits)
    wide, span = width * words, given.size // parts
    block = max(1, _BLOCK // max(wide, 1))
    blocks = -(-count // block)
    wrong = np.empty(parts * blocks, np.int64)
    limits, strides = np.array(sizes, np.int64), np.array(steps, np.int64) * words
    loop = _PICK_SHORT if wide <= _SHORT else _PICK
    done = loop(
        parts * blocks, parts * count * (wide + depth), out.view(bits), wrong, given, indices,
        limits, strides, count, block, blocks, span, depth, wide,
    )  # fmt: skip
    return out if done and not wrong.any() else None


def taken(params: Any, indices: Array, axis: int, out: Array | None = None) -> Array | None:
    """Slices by index along a dimension, as `np.take` gives them; None as `picked`."""
    lead, rest = params.shape[:axis], params.shape[axis + 1 :]
    width, parts = math.prod(rest), math.prod(lead)
    if not params.size or indices.size * width * parts < MANY:
        return None
    where = indices.reshape(-1, 1)
    found = picked(params, where, (params.shape[axis],), (width,), width, out, parts)
    return None if found is None else found.reshape(*lead, *indices.shape, *rest)
