"""Many strings as one array of bytes, in which kernels look at them without Python's objects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from opdock_cpu.jit import strings
from opdock_cpu.jit.looped import Looped
from opdock_cpu.text.arrays import Array, flat

__all__ = ["Packed", "joined", "packed"]


@dataclass(frozen=True)
class Packed:
    """Strings, one after the other.

    Attributes:
        data: the bytes of all.
        bounds: where each begins, and where the last ends.
        shape: of the array that they are.
    """

    data: Array
    bounds: Array
    shape: tuple[int, ...]

    @property
    def starts(self) -> Array:
        """Where each string begins."""
        return self.bounds[:-1]

    @property
    def ends(self) -> Array:
        """Where each string ends."""
        return self.bounds[1:]

    @cached_property
    def sizes(self) -> Array:
        """The bytes of each string."""
        return np.diff(self.bounds)

    @cached_property
    def ascii(self) -> bool:
        """Whether no string has a byte that is no character of ASCII."""
        return not self.data.size or int(self.data.max()) < 0x80

    def characters(self) -> Array:
        """The code points of each string: its bytes that are no continuation of another one."""
        if self.ascii:
            return self.sizes
        before = np.zeros(self.data.size + 1, np.int64)
        np.cumsum((self.data & 0xC0) != 0x80, out=before[1:])
        return np.diff(before[self.bounds])

    def pieces(self, starts: Array, ends: Array, shape: tuple[int, ...]) -> Array:
        """The strings that lie at places of the bytes."""
        return strings.made(self.data, starts, ends, shape)

    def instead(self, data: bytes) -> Array:
        """Strings of the same sizes, of other bytes."""
        return strings.made(np.frombuffer(data, np.uint8), self.starts, self.ends, self.shape)

    def padded(self, size: int) -> Array | None:
        """The bytes of all strings, each cut or filled with zeros to a size; None without code."""
        count = self.starts.size
        out = np.empty(count * size, np.uint8)
        return out if _PAD(count, out.size, out, self.data, self.bounds, size) else None

    def stripped(self) -> Array | None:
        """The strings without white space at their ends; None if there is no code."""
        starts, ends = (np.empty(self.starts.size, np.int64) for _ in range(2))
        steps = self.data.size + starts.size
        if not _STRIP(starts.size, steps, starts, ends, self.data, self.bounds, WHITE):
            return None
        return self.pieces(starts, ends, self.shape)

    def split(self, marks: Array, skip: bool, empty: int) -> tuple[Array, Array, Array] | None:
        """What lies between separators: the number of pieces of each string, and all of them.

        Args:
            marks: which bytes separate, 256 truth values.
            skip: whether empty pieces do not count.
            empty: how many pieces an empty string has.

        Returns:
            The counts, with the places where pieces begin and end; None if there is no code.
        """
        count, steps = self.starts.size, self.data.size + self.starts.size
        counts = np.empty(count, np.int64)
        about = (self.data, self.bounds, marks)
        if not _COUNT(count, steps, counts, *about, int(skip), empty):
            return None
        first = np.cumsum(counts) - counts
        total = int(counts.sum())
        starts, ends = np.zeros(total, np.int64), np.zeros(total, np.int64)
        if not _FIND(count, steps, starts, ends, counts, first, *about, int(skip)):
            return None
        return counts, starts, ends


def packed(values: Any) -> Packed | None:
    """An array's strings; None where they are too few, or there is no code for it."""
    found = strings.packed(values)
    return None if found is None else Packed(*found, np.shape(values))


def joined(values: Any) -> Packed:
    """The same of however few: then Python brings them together."""
    found = packed(values)
    if found is not None:
        return found
    items = flat(values)
    bounds = np.zeros(len(items) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, items), np.int64, len(items)), out=bounds[1:])
    return Packed(np.frombuffer(b"".join(items), np.uint8), bounds, np.shape(values))


def marks(separators: bytes) -> Array:
    """Which bytes are separators, as truth values."""
    out = np.zeros(256, np.bool_)
    out[list(separators)] = True
    return out


WHITE: Final = marks(b" \t\n\r\v\f")
"""White space, as Python and C have it."""


def _pad(begin: int, end: int, out: Array, data: Array, bounds: Array, size: int) -> None:
    for i in range(begin, end):
        first = bounds[i]
        have = min(bounds[i + 1] - first, size)
        for c in range(have):
            out[i * size + c] = data[first + c]
        for c in range(have, size):
            out[i * size + c] = 0


def _strip(
    begin: int, end: int, starts: Array, ends: Array, data: Array, bounds: Array, white: Array
) -> None:
    for i in range(begin, end):
        first, last = bounds[i], bounds[i + 1]
        while first < last and white[data[first]]:
            first += 1
        while first < last and white[data[last - 1]]:
            last -= 1
        starts[i] = first
        ends[i] = last


def _count(
    begin: int, end: int, counts: Array, data: Array, bounds: Array, marks: Array, skip: int,
    empty: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        first, last = bounds[i], bounds[i + 1]
        found = 0
        for at in range(bounds[i], last + 1):
            if at == last or marks[data[at]]:
                if at > first or skip == 0:
                    found += 1
                first = at + 1
        counts[i] = found if last > bounds[i] else empty


def _find(
    begin: int, end: int, starts: Array, ends: Array, counts: Array, places: Array, data: Array,
    bounds: Array, marks: Array, skip: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        have, first, last = places[i], bounds[i], bounds[i + 1]
        # Of an empty string the only piece, if it counts, is empty.
        if first == last and counts[i] > 0:
            starts[have] = first
            ends[have] = last
        elif first < last:
            for at in range(bounds[i], last + 1):
                if at == last or marks[data[at]]:
                    if at > first or skip == 0:
                        starts[have] = first
                        ends[have] = at
                        have += 1
                    first = at + 1


_PAD: Final = Looped(_pad)
_STRIP: Final = Looped(_strip)
_COUNT: Final = Looped(_count)
_FIND: Final = Looped(_find)
