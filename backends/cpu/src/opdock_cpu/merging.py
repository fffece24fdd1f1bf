"""Sorted cells of sparse tensors merged, found and placed by generated loops.

The rows of a matrix of indices are compared as they are: what NumPy can sort and search are
numbers, and to make numbers of rows takes more passes than to merge them. All are None for what is
not in order, and where there is no code.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["Merged", "by_row", "divided", "flat", "found", "merged", "put"]


_WORD: Final = 8
"""Bytes that a loop copies at once."""
_LIMIT: Final = 2**63 - 1
"""The last place of a flat tensor."""


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


def _steps(a: Array, count: int, rank: int) -> tuple[int, int]:
    """How many rows are before the one in front of them, and how many are like it."""
    back, same = 0, 0
    for i in range(1, count):
        here, before = i * rank, (i - 1) * rank
        c = _unlike(a, here, a, before, rank)
        if c == rank:
            same += 1
        elif a[here + c] < a[before + c]:
            back += 1
    return back, same


# ---------------------------------------------------------------- loops, all of one turn
def _merge(
    begin: int, end: int, out: Array, in_a: Array, in_b: Array, count: Array, a: Array, b: Array,
    first: int, second: int, rank: int,
) -> None:  # fmt: skip
    """Cells of both; `count` is how many there are, or -1."""
    for turn in range(begin, end):
        back, _same = _steps(a, first, rank)
        more, _same = _steps(b, second, rank)
        i, j, at = 0, 0, -1 if back + more > 0 else 0
        while at >= 0 and (i < first or j < second):
            in_a[at] = -1
            in_b[at] = -1
            side = 1 if i == first else -1
            if i < first and j < second:
                c = _unlike(a, i * rank, b, j * rank, rank)
                side = 0
                if c < rank:
                    side = -1 if a[i * rank + c] < b[j * rank + c] else 1
            to = at * rank
            if side <= 0:
                for c in range(rank):
                    out[to + c] = a[i * rank + c]
                in_a[at] = i
                i += 1
            else:
                for c in range(rank):
                    out[to + c] = b[j * rank + c]
            if side >= 0:
                in_b[at] = j
                j += 1
            at += 1
        count[turn] = at


def _find(
    begin: int, end: int, places: Array, wrong: Array, keys: Array, among: Array, many: int,
    most: int, rank: int,
) -> None:  # fmt: skip
    """Where each key stands among others, or -1; where those repeat, each is found once."""
    for turn in range(begin, end):
        back, _same = _steps(keys, many, rank)
        more, repeated = _steps(among, most, rank)
        wrong[turn] = back + more
        i, j = 0, 0
        while i < many:
            side = -1
            if j < most:
                c = _unlike(keys, i * rank, among, j * rank, rank)
                side = 0
                if c < rank:
                    side = -1 if keys[i * rank + c] < among[j * rank + c] else 1
            if side > 0:
                j += 1
            else:
                places[i] = j if side == 0 else -1
                i += 1
                if side == 0 and repeated > 0:
                    j += 1


def _flatten(
    begin: int, end: int, places: Array, wrong: Array, cells: Array, shape: Array, count: int,
    rank: int, ordered: int,
) -> None:  # fmt: skip
    """The place of each cell in the flat dense tensor; how many are outside, or out of order."""
    for turn in range(begin, end):
        bad = 0
        for i in range(count):
            place = 0
            for c in range(rank):
                at = cells[i * rank + c]
                bad += 1 if (at < 0) | (at >= shape[c]) else 0
                place = place * shape[c] + at
            places[i] = place
        for i in range(1, count if ordered > 0 else 0):
            bad += 1 if places[i] <= places[i - 1] else 0
        wrong[turn] = bad


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


_GATHER: Final = Looped(_gather)
_MERGE: Final = Looped(_merge)
_FIND: Final = Looped(_find)
_FLATTEN: Final = Looped(_flatten, fixed=("rank",))
_PUT: Final = Looped(_put)
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


def merged(a: Array, b: Array) -> Merged | None:
    """The cells [n, rank] of both; the first of those that one repeats is the other's first."""
    rank, most = a.shape[1], len(a) + len(b)
    if not a.size or not b.size:
        return None
    out, count = np.empty((most, rank), np.int64), np.empty(1, np.int64)
    in_a, in_b = np.empty(most, np.int64), np.empty(most, np.int64)
    done = _MERGE(1, 2 * out.size, out, in_a, in_b, count, a, b, len(a), len(b), rank)
    n = int(count[0]) if done else -1
    return Merged(out[:n], in_a[:n], in_b[:n]) if n >= 0 else None


def found(keys: Array, among: Array) -> Array | None:
    """Where each of the cells [n, rank] is among others, or -1.

    Where the others repeat a cell, the first of the cells like it is at its first place, and so on.
    """
    rank = keys.shape[1]
    if not keys.size or not among.size:
        return None
    places, wrong = np.empty(len(keys), np.int64), np.empty(1, np.int64)
    steps = keys.size + among.size
    if not _FIND(1, steps, places, wrong, keys, among, len(keys), len(among), rank):
        return None
    return None if wrong[0] else places


def flat(cells: Array, shape: tuple[int, ...], ordered: bool) -> Array | None:
    """Where cells [n, rank] are in the flat dense tensor.

    All are inside, and they ascend if that is `ordered`.
    """
    count, rank = cells.shape
    if not cells.size or not 0 < math.prod(shape) <= _LIMIT or min(shape) < 0:
        return None
    places, wrong = np.empty(count, np.int64), np.empty(1, np.int64)
    sizes = np.array(shape, np.int64)
    if not _FLATTEN(1, cells.size, places, wrong, cells, sizes, count, rank, int(ordered)):
        return None
    return None if wrong[0] else places


def put(out: Array, places: Array, values: Array) -> None:
    """Puts values, or one, to different places of a contiguous tensor, when that is flat."""
    size, flat_out = out.dtype.itemsize, out.reshape(-1)
    if values.shape == places.shape and not out.dtype.hasobject and size <= _WORD:
        # Bytes are copied, of whatever type.
        cells, given = (np.ascontiguousarray(a).view(f"i{size}") for a in (flat_out, values))
        if _PUT(places.size, places.size, cells, places, given, most=1):
            return
    flat_out[places] = values


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
