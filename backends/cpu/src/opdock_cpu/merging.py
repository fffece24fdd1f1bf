"""Sorted cells of sparse tensors merged, found and placed by generated loops.

The rows of a matrix of indices are compared as they are: what NumPy can sort and search are
numbers, and to make numbers of rows takes more passes than to merge them. All are None for what is
not in order, and where there is no code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["Merged", "by_row", "divided", "found", "merged", "put", "row_counts"]


_BLOCK, _LEAST = 1 << 15, 1 << 4
"""Numbers of a turn, and the fewest rows."""
_WORD: Final = 8
"""Bytes that a loop copies at once."""


# ---------------------------------------------------------------- rows
def _unlike(a: Array, i: int, b: Array, j: int, rank: int) -> int:
    """The first column in which two rows differ, or how many columns there are."""
    c = 0
    while c + 8 <= rank:
        # Eight at once, which LLVM makes a vector of.
        different = 0
        for k in range(c, c + 8):
            different = different | (a[i + k] ^ b[j + k])
        if different != 0:
            break
        c += 8
    while c < rank and a[i + c] == b[j + c]:
        c += 1
    return c


def _side(a: Array, i: int, b: Array, j: int, rank: int) -> int:
    """-1 for a row that is before another, 1 for one behind it, 0 for one like it."""
    c = _unlike(a, i * rank, b, j * rank, rank)
    side = 0
    if c < rank:
        side = -1 if a[i * rank + c] < b[j * rank + c] else 1
    return side


def _compared(begin: int, end: int, steps: Array, cells: Array, rank: int) -> None:
    """A turn is a row, beside the one in front of it: 1 is behind it, 0 like it, -1 before it."""
    for i in range(begin, end):
        steps[i] = 1
        if i > 0:
            steps[i] = _side(cells, i, cells, i - 1, rank)


# ---------------------------------------------------------------- loops of one turn
def _merge(
    begin: int, end: int, in_a: Array, in_b: Array, count: Array, a: Array, b: Array,
    first: int, second: int, rank: int,
) -> None:  # fmt: skip
    """Where the cells of both are in each; `count` is how many there are."""
    for turn in range(begin, end):
        i, j, at = 0, 0, 0
        while i < first or j < second:
            side = 1 if i == first else -1
            if i < first and j < second:
                side = _side(a, i, b, j, rank)
            in_a[at] = i if side <= 0 else -1
            in_b[at] = j if side >= 0 else -1
            i += 1 if side <= 0 else 0
            j += 1 if side >= 0 else 0
            at += 1
        count[turn] = at


# ---------------------------------------------------------------- loops in shares
def _copy(
    begin: int, end: int, out: Array, in_a: Array, in_b: Array, a: Array, b: Array, rank: int
) -> None:  # fmt: skip
    """A turn is a cell, which one of both has or the other."""
    for k in range(begin, end):
        if in_a[k] >= 0:
            for c in range(rank):
                out[k * rank + c] = a[in_a[k] * rank + c]
        else:
            for c in range(rank):
                out[k * rank + c] = b[in_b[k] * rank + c]


def _first(keys: Array, i: int, among: Array, most: int, rank: int) -> int:
    """The first of the others, which are in order, that is not before a key."""
    low, far = 0, most
    while low < far:
        middle = (low + far) // 2
        if _side(keys, i, among, middle, rank) > 0:
            low = middle + 1
        else:
            far = middle
    return low


def _find(
    begin: int, end: int, places: Array, own: Array, keys: Array, steps: Array, among: Array,
    others: Array, many: int, most: int, rank: int, block: int,
) -> None:  # fmt: skip
    """A turn is a block of keys: where each stands among others, or -1, all in order.

    Keys that are alike have the first of the others like them in `places`, and one each, in turn,
    in `own`. How rows follow each other is in `steps` and `others`, as `_compared` says it.
    """
    for t in range(begin, end):
        first, j, alike, side = t * block, 0, 0, 1
        if first > 0:
            j = _first(keys, first, among, most, rank)
            alike = first - _first(keys, first, keys, first, rank)
        for i in range(first, min(first + block, many)):
            if i == first or steps[i] != 0:
                alike = alike if i == first else 0
                side = 1
                while side > 0 and j < most:
                    side = _side(keys, i, among, j, rank)
                    j += 1 if side > 0 else 0
            else:
                alike += 1
            places[i] = j if side == 0 else -1
            own[i] = places[i]
            if side == 0 and alike > 0:
                one, before = j + alike, 0
                if i > first:
                    before = own[i - 1]
                elif one < most:
                    before = -1 if _side(keys, i, among, one, rank) != 0 else 0
                own[i] = -1
                if before >= 0 and one < most and others[min(one, most - 1)] == 0:
                    own[i] = one


def _put(begin: int, end: int, out: Array, places: Array, values: Array) -> None:
    for i in range(begin, end):
        out[places[i]] = values[i]


def _count(
    begin: int, end: int, part: Array, counts: Array, wrong: Array, cells: Array, shape: Array,
    ends: Array, rows: int, rank: int, axis: int,
) -> None:  # fmt: skip
    """The part of each cell along an axis, and how many there are of each."""
    for turn in range(begin, end):
        bad, p = 0, 0
        for i in range(rows):
            outside = 0
            for c in range(rank):
                if cells[i * rank + c] < 0 or cells[i * rank + c] >= shape[c]:
                    outside = 1
            bad += outside
            if outside == 0:
                at = cells[i * rank + axis]
                # Mostly the part of the cell before, or the next one.
                if p > 0 and at < ends[p - 1]:
                    p = 0
                while at >= ends[p]:
                    p += 1
                part[i] = p
                counts[p] += 1
        wrong[turn] = bad


def _part(
    begin: int, end: int, out: Array, source: Array, place: Array, cells: Array, part: Array,
    starts: Array, rows: int, rank: int, axis: int,
) -> None:  # fmt: skip
    """Cells by part, counted from where their part begins; `place` is where each part goes on."""
    for _turn in range(begin, end):
        for i in range(rows):
            p = part[i]
            at = place[p]
            place[p] = at + 1
            source[at] = i
            for c in range(rank):
                out[at * rank + c] = cells[i * rank + c]
            out[at * rank + axis] = cells[i * rank + axis] - starts[p]


def _tally(
    begin: int, end: int, counts: Array, wrong: Array, cells: Array, rows: int, rank: int, size: int
) -> None:  # fmt: skip
    """How many cells each row has; `wrong` counts those that are in none."""
    for turn in range(begin, end):
        bad = 0
        for i in range(rows):
            row = cells[i * rank]
            if row < 0 or row >= size:
                bad += 1
            else:
                counts[row] += 1
        wrong[turn] = bad


def _gather(
    begin: int, end: int, out: Array, place: Array, next: Array, cells: Array, rows: int, rank: int
) -> None:  # fmt: skip
    """Cells by row; `next` is where each row goes on."""
    for _turn in range(begin, end):
        for i in range(rows):
            row = cells[i * rank]
            at = next[row]
            next[row] = at + 1
            place[i] = at
            for c in range(rank):
                out[at * rank + c] = cells[i * rank + c]


_COMPARED: Final = Looped(_compared)
_COPY: Final = Looped(_copy)
_GATHER: Final = Looped(_gather)
_MERGE: Final = Looped(_merge)
_FIND: Final = Looped(_find)
_PUT: Final = Looped(_put)
_TALLY: Final = Looped(_tally)
_COUNT: Final = Looped(_count)
_PART: Final = Looped(_part)


# ---------------------------------------------------------------- arrays
class Merged(NamedTuple):
    """The cells of two sparse tensors, in order.

    Attributes:
        cells: their coordinates.
        a, b: where each is in either tensor, or -1.
    """

    cells: Array
    a: Array
    b: Array


def _steps(cells: Array) -> Array | None:
    """How rows follow each other; None where some are out of order, and without code."""
    steps = np.empty(len(cells), np.int8)
    if not _COMPARED(len(cells), cells.size, steps, cells, cells.shape[1]):
        return None
    return steps if steps.min() >= 0 else None


def merged(a: Array, b: Array) -> Merged | None:
    """The cells [n, rank] of both; the first of those that one repeats is the other's first."""
    rank, most = a.shape[1], len(a) + len(b)
    if not a.size or not b.size or _steps(a) is None or _steps(b) is None:
        return None
    in_a, in_b = np.empty(most, np.int64), np.empty(most, np.int64)
    count = np.empty(1, np.int64)
    if not _MERGE(1, 4 * most, in_a, in_b, count, a, b, len(a), len(b), rank):
        return None
    n = int(count[0])
    out, in_a, in_b = np.empty((n, rank), np.int64), in_a[:n], in_b[:n]
    return Merged(out, in_a, in_b) if _COPY(n, out.size, out, in_a, in_b, a, b, rank) else None


def found(several: Sequence[Array], among: Array) -> list[Array] | None:
    """Where each of several tensors' cells [n, rank] is among others, or -1.

    Where the others repeat a cell, the first of the cells like it is at its first place, and so on.
    """
    others = _steps(among) if among.size and all(keys.size for keys in several) else None
    if others is None:
        return None
    repeated, each = not others.all(), []
    for keys in several:
        steps = _steps(keys)
        if steps is None:
            return None
        many, rank = keys.shape
        places, own = np.empty(many, np.int64), np.empty(many, np.int64)
        block = max(_LEAST, _BLOCK // rank)
        arrays, numbers = (places, own, keys, steps, among, others), (many, len(among), rank, block)
        if not _FIND(-(-many // block), keys.size + among.size, *arrays, *numbers):
            return None
        each.append(own if repeated else places)
    return each


def put(out: Array, places: Array, values: Array) -> None:
    """Puts values, or one, to different places of a contiguous tensor, when that is flat."""
    size, flat_out = out.dtype.itemsize, out.reshape(-1)
    if values.shape == places.shape and not out.dtype.hasobject and size <= _WORD:
        # Bytes are copied, of whatever type.
        cells, given = (np.ascontiguousarray(a).view(f"i{size}") for a in (flat_out, values))
        if _PUT(places.size, places.size, cells, places, given, most=1):
            return
    flat_out[places] = values


def row_counts(cells: Array, size: int) -> Array | None:
    """How many cells [n, rank] each row has; None without code, or if one is in no row."""
    counts, wrong = np.zeros(size, np.int64), np.empty(1, np.int64)
    rows, rank = cells.shape
    done = _TALLY(1, 2 * rows, counts, wrong, cells, rows, rank, size)
    return counts if done and not wrong[0] else None


def by_row(cells: Array, first: Array, count: int) -> tuple[Array, Array] | None:
    """Cells [n, rank] where their rows begin, in a tensor of so many; None without code.

    Args:
        cells: whose rows there are.
        first: where each row begins among all cells.
        count: how many cells there are; one that none is put to is zero.

    Returns:
        All cells, and where each of the given ones is among them.
    """
    out, place = np.zeros((count, cells.shape[1]), np.int64), np.empty(len(cells), np.int64)
    if not _GATHER(1, cells.size, out, place, first.copy(), cells, *cells.shape):
        return None
    return out, place


def divided(
    cells: Array, shape: tuple[int, ...], axis: int, lengths: Array
) -> tuple[Array, Array, Array] | None:
    """Cells by which part of an axis they are in.

    Args:
        cells: their coordinates [n, rank], all inside of the shape.
        shape: of the tensor.
        axis: along which it is parted.
        lengths: of the parts, which come to the whole.

    Returns:
        The coordinates within each part, one part behind the other; where each of these cells was;
        and how many cells each part has.
    """
    count, rank = cells.shape
    if not cells.size or math.prod(shape) == 0:
        return None
    ends = np.cumsum(lengths)
    part, wrong = np.empty(count, np.int64), np.empty(1, np.int64)
    counts, sizes = np.zeros(len(lengths), np.int64), np.array(shape, np.int64)
    numbers = count, rank, axis
    if not _COUNT(1, cells.size, part, counts, wrong, cells, sizes, ends, *numbers):
        return None
    if wrong[0]:
        return None
    out, source = np.empty_like(cells), np.empty(count, np.int64)
    place = np.cumsum(counts) - counts
    if not _PART(1, cells.size, out, source, place, cells, part, ends - lengths, *numbers):
        return None
    return out, source, counts
