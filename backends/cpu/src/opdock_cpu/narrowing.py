"""From sums of 32 bits to bytes, in TensorFlow's fixed-point arithmetic of 16 bits.

The same in every bit whether generated code runs or, until that is there, NumPy. Generated code
goes on to what follows in the same pass: what becomes of a byte when a bias is added to it and the
sum narrowed again is looked up. Sums may come as whole float32 numbers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock_cpu import ranges
from opdock_cpu.jit.looped import Looped
from opdock_cpu.ranges import F32, Range, integers

__all__ = ["Narrowing", "requantized"]

Array = npt.NDArray[Any]
_BLOCK: Final = 1 << 14
_STEPS: Final = 4
"""What an element costs, in turns of a simple loop."""


def _plain(
    begin: int, end: int, out: Array, sums: Array,
    factor: int, shift: int, least: int, most: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        level = ((int(sums[i]) * factor >> 32) + shift) >> 16
        out[i] = min(max(level, least), most)


def _biased(
    begin: int, end: int, out: Array, x: Array, every: Array, bias: Array,
    depth: int, factor: int, shift: int, least: int, most: int,
) -> None:  # fmt: skip
    for row in range(begin, end):
        for c in range(depth):
            wide = every[int(x[row * depth + c])] + bias[c]
            level = ((int(wide) * factor >> 32) + shift) >> 16
            out[row * depth + c] = min(max(level, least), most)


def _through(
    begin: int, end: int, out: Array, sums: Array, found: Array, depth: int, factor: int, shift: int
) -> None:
    for row in range(begin, end):
        for c in range(depth):
            level = ((int(sums[row * depth + c]) * factor >> 32) + shift) >> 16
            out[row * depth + c] = found[min(max(level, 0), 255) * depth + c]


def _lines(
    begin: int, end: int, out: Array, x: Array, y: Array,
    step_x: int, step_y: int, start: int, factor: int, shift: int, least: int, most: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        wide = int(x[i]) * step_x + int(y[i]) * step_y + start
        level = ((wide * factor >> 32) + shift) >> 16
        out[i] = min(max(level, least), most)


def _added(
    begin: int, end: int, out: Array, x: Array, y: Array, every_x: Array, every_y: Array,
    factor: int, shift: int, least: int, most: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        wide = every_x[int(x[i])] + every_y[int(y[i])]
        level = ((int(wide) * factor >> 32) + shift) >> 16
        out[i] = min(max(level, least), most)


_PLAIN: Final = Looped(_plain)
_BIASED: Final = Looped(_biased)
_THROUGH: Final = Looped(_through)
_LINES: Final = Looped(_lines)
_ADDED: Final = Looped(_added)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How integers of 32 bits over one range become bytes over another.

    Attributes:
        factor: what a sum is multiplied by, in units of 2**-48.
        shift: what is added then, in units of 2**-16.
        least, most: the bytes between which results are kept.
    """

    factor: int
    shift: int
    least: int = 0
    most: int = 255

    @classmethod
    def between(cls, source: Range, target: Range, least: int = 0, most: int = 255) -> Narrowing:
        """The arithmetic from one range to another."""
        one, (low, high), (new_low, new_high) = 1 << 16, source, target
        spread, new_spread = high - low, new_high - new_low
        factor = shift = 0
        if new_spread != 0:
            reciprocal = F32(255.0 / float(new_spread))
            middle = F32(float(low + high) / 2.0)
            factor = int(255.0 * one * float(spread) / float(new_spread))
            shift = int(middle * reciprocal * F32(one))
            shift -= int(float(one) * (float(new_low) * 255.0) / float(new_spread))
        return cls(factor, shift + (one >> 1), least, most)

    @property
    def _numbers(self) -> tuple[int, int, int, int]:
        return self.factor, self.shift, self.least, self.most

    def __call__(self, sums: Array) -> Array:
        """The bytes of an array of sums, int32 or whole float32 numbers."""
        out = np.empty(sums.shape, np.uint8)
        if not _PLAIN(sums.size, sums.size * _STEPS, out, sums, *self._numbers):
            self._plainly(sums, out)
        return out

    def _plainly(self, sums: Array, out: Array) -> None:
        flat, flat_out = np.ascontiguousarray(sums).reshape(-1), out.reshape(-1)
        factor = np.int64(self.factor)
        # By blocks that stay in the cache while five passes go over them.
        for start in range(0, flat.size, _BLOCK):
            part = flat[start : start + _BLOCK].astype(np.int64)
            part *= factor
            part >>= 32
            part += self.shift
            part >>= 16
            np.clip(part, self.least, self.most, out=part)
            flat_out[start : start + _BLOCK] = part

    def biased(self, x: Array, every: Array, bias: Array) -> Array:
        """The bytes of `every[x] + bias`.

        Args:
            x: bytes [..., n].
            every: of each byte the integer of 32 bits.
            bias: n of them.
        """
        out = np.empty(x.shape, np.uint8)
        depth = len(bias)
        rows = x.size // max(depth, 1)
        if not _BIASED(rows, x.size * _STEPS, out, x, every, bias, depth, *self._numbers):
            self._plainly(every[x] + bias, out)
        return out

    def after(self, first: Narrowing, sums: Array, every: Array, bias: Array) -> Array:
        """The bytes of `every[first(sums)] + bias`; see `biased`."""
        depth = len(bias)
        found = self.behind(every, bias)
        out = np.empty(sums.shape, np.uint8)
        rows = sums.size // max(depth, 1)
        numbers = depth, first.factor, first.shift
        if not _THROUGH(rows, sums.size * _STEPS, out, sums, found, *numbers):
            return self.biased(first(sums), every, bias)
        return out

    def behind(self, every: Array, bias: Array) -> Array:
        """Of each byte b, in each place of the last axis, the byte of `every[b] + bias`."""
        return _behind(self, every.tobytes(), bias.tobytes())

    def added(self, x: Array, y: Array, every_x: Array, every_y: Array) -> Array:
        """The bytes of `every_x[x] + every_y[y]`, of bytes of the same shape."""
        out = np.empty(x.shape, np.uint8)
        line_x, line_y = _line(every_x.tobytes()), _line(every_y.tobytes())
        if line_x is not None and line_y is not None:
            steps, start = (line_x[0], line_y[0]), line_x[1] + line_y[1]
            if _LINES(x.size, x.size * _STEPS, out, x, y, *steps, start, *self._numbers):
                return out
        if not _ADDED(x.size, x.size * _STEPS, out, x, y, every_x, every_y, *self._numbers):
            self._plainly(every_x[x] + every_y[y], out)
        return out


@functools.lru_cache(maxsize=128)
def _behind(narrow: Narrowing, every: bytes, bias: bytes) -> Array:
    """What becomes of each byte in each place of the last axis: [256, n] bytes."""
    wide = np.frombuffer(every, np.int32)[:, None] + np.frombuffer(bias, np.int32)
    out = np.empty(wide.shape, np.uint8)
    narrow._plainly(wide, out)
    return out


@functools.lru_cache(maxsize=256)
def _line(every: bytes) -> tuple[int, int] | None:
    """The step and the start of whole numbers that are equally far apart; None if they are not.

    Two of them are added up in 64 bits, so the sums must fit into 32.
    """
    heights = np.frombuffer(every, np.int32).astype(np.int64)
    step, start = int(heights[1] - heights[0]), int(heights[0])
    even = (np.diff(heights) == step).all() and np.abs(heights).max() < 1 << 30
    return (step, start) if even else None


def requantized(x: Array, source: Range, target: Range, kind: Any) -> Array:
    """Integers over one range as those of type `kind` over another.

    Args:
        x: plain integers.
        source: their range.
        target: the range wanted.
        kind: a NumPy type.
    """
    if x.dtype == np.int32 and kind == np.uint8:
        return Narrowing.between(source, target)(x)
    numbers = ranges.dequantized(x, *source, integers(x.dtype))
    return ranges.quantized(numbers, *target, integers(kind)).astype(kind)
