"""Windows over rows of words as strings, by generated loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock_cpu.jit import strings
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.text.packed import Packed

__all__ = ["ngrams"]


# ---------------------------------------------------------------- one window
def _part(i: int, width: int, side: int, count: int) -> tuple[int, int, int]:
    """How many pads are in front of a window's words, and which words these are."""
    before = min(max(side - i, 0), width)
    low = min(max(i - side, 0), count)
    return before, low, max(min(i - side + width, count), low)


def _size(
    bounds: Array, first: int, count: int, i: int, width: int, side: int, mark: int, left: int,
    right: int,
) -> Any:  # fmt: skip
    before, low, high = _part(i, width, side, count)
    words = bounds[first + high] - bounds[first + low]
    after = width - before - (high - low)
    return words + before * left + after * right + (width - 1) * mark


def _put(out: Array, at: int, end: int, data: Array, begin: int, size: int, mark: int) -> int:
    """Copies a piece, and a separator behind it unless the window ends; where that is."""
    for k in range(size):
        out[at + k] = data[begin + k]
    to = at + size
    if to < end:
        for k in range(mark):
            out[to + k] = data[k]
        to += mark
    return to


def _write(
    out: Array, start: int, end: int, data: Array, bounds: Array, first: int, count: int, i: int,
    width: int, side: int, mark: int, left: int, right: int,
) -> None:  # fmt: skip
    """In front of the words, the data are the separator and both pads."""
    before, low, high = _part(i, width, side, count)
    at = start
    for _k in range(before):
        at = _put(out, at, end, data, mark, left, mark)
    for j in range(first + low, first + high):
        at = _put(out, at, end, data, bounds[j], bounds[j + 1] - bounds[j], mark)
    for _k in range(width - before - (high - low)):
        at = _put(out, at, end, data, mark + left, right, mark)


# ---------------------------------------------------------------- loops; a turn is a row
def _measure(
    begin: int, end: int, sizes: Array, firsts: Array, bounds: Array, splits: Array, counts: Array,
    widths: Array, sides: Array, kinds: int, short: int, mark: int, left: int, right: int,
) -> None:  # fmt: skip
    for r in range(begin, end):
        at, first, count = firsts[r], splits[r], counts[r]
        for k in range(kinds):
            for i in range(count + 2 * sides[k] - widths[k] + 1):
                sizes[at] = _size(bounds, first, count, i, widths[k], sides[k], mark, left, right)
                at += 1
        if at < firsts[r + 1]:
            width = count + 2 * short
            sizes[at] = _size(bounds, first, count, 0, width, short, mark, left, right)


def _fill(
    begin: int, end: int, out: Array, ends: Array, firsts: Array, data: Array, bounds: Array,
    splits: Array, counts: Array, widths: Array, sides: Array, kinds: int, short: int, mark: int,
    left: int, right: int,
) -> None:  # fmt: skip
    for r in range(begin, end):
        at, first, count = firsts[r], splits[r], counts[r]
        for k in range(kinds):
            for i in range(count + 2 * sides[k] - widths[k] + 1):
                _write(
                    out, ends[at], ends[at + 1], data, bounds, first, count, i, widths[k],
                    sides[k], mark, left, right,
                )  # fmt: skip
                at += 1
        if at < firsts[r + 1]:
            width = count + 2 * short
            _write(
                out, ends[at], ends[at + 1], data, bounds, first, count, 0, width, short, mark,
                left, right,
            )  # fmt: skip


_MEASURE: Final = Looped(_measure)
_FILL: Final = Looped(_fill)


def ngrams(
    words: Packed, splits: Array, widths: Sequence[int], pad: int, preserve: bool,
    marks: tuple[bytes, bytes, bytes],
) -> tuple[Array, Array] | None:  # fmt: skip
    """The windows of each row, and where each row's begin; None without code.

    Args:
        words: all of them.
        splits: where each row begins, and the last one ends; all are inside.
        widths: of the windows, which come one width after the other.
        pad: how many pads are on either side at most, below zero for as many as a window has room.
        preserve: whether a row without windows is one.
        marks: the separator, the left and the right pad.
    """
    splits = splits.astype(np.int64)
    counts = np.maximum(np.diff(splits), 0)
    sides = np.array([w - 1 if pad < 0 else min(pad, w - 1) for w in widths], np.int64)
    each = np.maximum(counts[:, None] + 2 * sides - np.array(widths, np.int64) + 1, 0).sum(axis=1)
    if preserve:
        each = np.where((each == 0) & (counts > 0), 1, each)
    firsts = np.concatenate([[0], np.cumsum(each)])
    total, rows = int(firsts[-1]), counts.size
    front = np.frombuffer(b"".join(marks), np.uint8)
    data, bounds = np.concatenate([front, words.data]), words.bounds + front.size
    about = counts, np.array(widths, np.int64), sides
    numbers = (len(widths), max(pad, 0), *map(len, marks))
    sizes = np.empty(total, np.int64)
    if not _MEASURE(rows, total, sizes, firsts, bounds, splits, *about, *numbers):
        return None
    ends = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(int(ends[-1]), np.uint8)
    if not _FILL(rows, out.size + total, out, ends, firsts, data, bounds, splits, *about, *numbers):
        return None
    return strings.made(out, ends[:-1], ends[1:], (total,)), firsts
