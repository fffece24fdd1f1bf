"""Sums of products of bytes, as they come from what multiplies, and the bytes that become of them.

What multiplies takes bytes as they are; what their zeros add to the sums is added where the sums
are read next, so that no pass over them is made for it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

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


_ONCE: Final = Looped(_once)
_TWICE: Final = Looped(_twice)


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
        if self.rest is None:
            return then.after(first, self.values, every, bias)
        rows, arrays, numbers = self._arguments()
        out = np.empty(self.values.shape, np.uint8)
        numbers += [first.factor, first.shift]
        found = then.behind(every, bias)
        if not _TWICE(rows, out.size * _STEPS, out, *arrays, found, *numbers):
            return then.after(first, self.whole(), every, bias)
        return out


@functools.lru_cache(maxsize=64)
def _none(depth: int) -> Array:
    return np.zeros(depth, np.int32)
