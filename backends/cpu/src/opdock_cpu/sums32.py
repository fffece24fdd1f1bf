"""Sums of products of bytes, as they come from what multiplies, and the bytes that become of them.

What multiplies takes bytes as they are; what their zeros add to the sums is added where the sums
are read next, so that no pass over them is made for it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opdock_cpu.jit.looped import Looped
from opdock_cpu.narrowing import Narrowing

__all__ = ["Rest", "Sums32"]

Array = npt.NDArray[Any]
_STEPS: Final = 3
"""What an element costs, in turns of a simple loop."""
_NO_COUNTS: Final = np.zeros(1, np.int32)


def _once(
    begin: int, end: int, out: Array, sums: Array, offsets: Array, counts: Array,
    depth: int, counted: int, times: int, factor: int, shift: int, least: int, most: int,
) -> None:  # fmt: skip
    for row in range(begin, end):
        taken = counts[row * counted] * times
        for c in range(depth):
            total = int(sums[row * depth + c]) + offsets[c] - taken
            level = ((total * factor >> 32) + shift) >> 16
            out[row * depth + c] = min(max(level, least), most)


def _twice(
    begin: int, end: int, out: Array, sums: Array, offsets: Array, counts: Array, found: Array,
    depth: int, counted: int, times: int, factor: int, shift: int,
) -> None:  # fmt: skip
    for row in range(begin, end):
        taken = counts[row * counted] * times
        for c in range(depth):
            total = int(sums[row * depth + c]) + offsets[c] - taken
            level = ((total * factor >> 32) + shift) >> 16
            out[row * depth + c] = found[min(max(level, 0), 255) * depth + c]


def _straight(
    begin: int, end: int, out: Array, sums: Array, offsets: Array, counts: Array, starts: Array,
    depth: int, counted: int, times: int, factor: int, shift: int,
    step: int, last_factor: int, last_shift: int, least: int, most: int,
) -> None:  # fmt: skip
    for row in range(begin, end):
        taken = counts[row * counted] * times
        for c in range(depth):
            total = int(sums[row * depth + c]) + offsets[c] - taken
            level = ((total * factor >> 32) + shift) >> 16
            wide = (min(max(level, 0), 255) * step + starts[c]) >> _PLACES
            last = ((wide * last_factor >> 32) + last_shift) >> 16
            out[row * depth + c] = min(max(last, least), most)


_ONCE: Final = Looped(_once)
_TWICE: Final = Looped(_twice)
_STRAIGHT: Final = Looped(_straight)
_PLACES: Final = 24


# ---------------------------------------------------------------- sums
@dataclass(frozen=True, slots=True)
class Rest:
    """What the sums of products lack.

    Attributes:
        offsets: what is to be added to each output, on the last axis.
        counts: for each row, what is to be taken off `times` over; None is nothing.
        times: how often.
    """

    offsets: Array
    counts: Array | None = None
    times: int = 0


@dataclass(frozen=True, slots=True)
class Sums32:
    """Sums of products of bytes [..., n], of 32 bits.

    Attributes:
        values: int32, or whole float32 numbers.
        rest: what they lack; with it they still fit into 32 bits.
    """

    values: Array
    rest: Rest | None = None

    def whole(self) -> Array:
        """The sums, with all that belongs to them."""
        rest = self.rest
        if rest is None:
            return self.values
        out: Array = self.values.astype(np.int32)
        out += rest.offsets.astype(np.int32)
        if rest.counts is not None:
            out -= (rest.counts * np.int32(rest.times)).reshape(*out.shape[:-1], 1)
        return out

    def _arguments(self) -> tuple[int, list[Array], list[int]]:
        values, rest = self.values, self.rest
        depth = values.shape[-1]
        offsets = _none(depth) if rest is None else rest.offsets
        counts = None if rest is None else rest.counts
        arrays = [values, offsets, _NO_COUNTS if counts is None else counts]
        times = rest.times if rest is not None else 0
        return values.size // max(depth, 1), arrays, [depth, int(counts is not None), times]

    def narrowed(self, narrow: Narrowing) -> Array:
        """Their bytes."""
        if self.rest is None:
            return narrow(self.values)
        rows, arrays, numbers = self._arguments()
        out = np.empty(self.values.shape, np.uint8)
        numbers += [narrow.factor, narrow.shift, narrow.least, narrow.most]
        if not _ONCE(rows, out.size * _STEPS, out, *arrays, *numbers):
            return narrow(self.whole())
        return out

    def narrowed_twice(
        self, first: Narrowing, then: Narrowing, every: Array, bias: Array
    ) -> Array:  # fmt: skip
        """The bytes of `every[bytes] + bias`, where `bytes` are those of the sums.

        Args:
            first: makes the bytes of the sums, any byte.
            then: those of what is made of these.
            every: of each byte an integer of 32 bits.
            bias: what is added to it, for each output.
        """
        rows, arrays, numbers = self._arguments()
        out = np.empty(self.values.shape, np.uint8)
        work = out.size * _STEPS
        numbers += [first.factor, first.shift]
        line = _line(every.tobytes())
        if line is None:
            done = _TWICE(rows, work, out, *arrays, then.behind(every, bias), *numbers)
        else:
            starts = (bias.astype(np.int64) << _PLACES) + line.start
            last = [then.factor, then.shift, then.least, then.most]
            done = _STRAIGHT(rows, work, out, *arrays, starts, *numbers, line.step, *last)
        return out if done else then.after(first, self.whole(), every, bias)


# ---------------------------------------------------------------- bytes on a line
class _Line(NamedTuple):
    """Whole numbers on a line: number i is `(i * step + start) >> _PLACES`."""

    step: int
    start: int


@functools.lru_cache(maxsize=256)
def _line(every: bytes) -> _Line | None:
    """The line on which 256 whole numbers lie, each rounded down; None if there is none.

    Bytes in another scale are on one, unless float32 rounds them to either side of it. Reading a
    table for each element takes twice as long as computing what stands there.
    """
    heights = np.frombuffer(every, np.int32).astype(np.int64) << _PLACES
    at = np.arange(len(heights))

    def ends(step: int) -> tuple[int, int]:
        """Between which starts a line of this step meets all numbers."""
        rest = heights - at * step
        return int(rest.max()), int(rest.min()) + (1 << _PLACES) - 1

    def room(step: int) -> int:
        least, most = ends(step)
        return most - least

    # The room is concave in the step.
    low, high = -(1 << _PLACES + 16), 1 << _PLACES + 16
    while high - low > 2:
        third = (high - low) // 3
        if room(low + third) < room(high - third):
            low += third
        else:
            high -= third
    step = max(range(low, high + 1), key=room)
    least, most = ends(step)
    return _Line(step, (least + most) // 2) if least <= most else None


@functools.lru_cache(maxsize=64)
def _none(depth: int) -> Array:
    return np.zeros(depth, np.int32)
