"""What quantized integers stand for: TensorFlow's arithmetic between numbers and integers.

A range (low, high) says what the lowest and the highest integer of a type stand for. Results must
equal TensorFlow's to the last integer, so each function rounds where the kernels of TensorFlow do
(`core/kernels/quantization_utils.h`): in float32 over arrays, in double precision for one number.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import checks, errors
from opdock_cpu.jit.looped import Looped, single

__all__ = [
    "F32", "Integers", "Range", "clamped", "dequantized", "integers", "invalid", "number",
    "quantized", "quantized_bytes", "round_away", "scalar", "storage", "unclamped", "zero_point",
]  # fmt: skip

Array = npt.NDArray[Any]
Range = tuple[np.float32, np.float32]
F32: Final = np.float32
_BELOW_HALF: Final = F32(0.49999997)
_STEPS: Final = 2
"""What a byte costs, in turns of a simple loop."""


@dataclass(frozen=True, slots=True)
class Integers:
    """The integers of a quantized type.

    Attributes:
        lowest, highest: the ends of the type.
        bounds: the same as float32, but never beyond what converts back.
    """

    lowest: int
    highest: int
    bounds: tuple[np.float32, np.float32]

    @property
    def steps(self) -> int:
        """How many steps there are from the lowest to the highest."""
        return self.highest - self.lowest


@functools.cache
def integers(kind: Any) -> Integers:
    """The integers of a NumPy type."""
    info = np.iinfo(kind)
    lowest, highest = int(info.min), int(info.max)
    # 2**31 - 1 is no float32; the next one above does not fit into 32 bits.
    return Integers(lowest, highest, (F32(lowest), F32(min(highest, 2147483520))))


def invalid(message: str) -> errors.InvalidArgumentError:
    """An error that no node is named in yet."""
    return checks.invalid(message)


def storage(x: Array) -> Array:
    """A quantized array as plain integers, the same memory."""
    return x if x.dtype.names is None else x.view(x.dtype[0])


def scalar(value: Array, name: str) -> np.float32:
    """An end of a range.

    Raises:
        InvalidArgumentError: `value` has more than one element, or none.
    """
    if value.size != 1:
        shape = ",".join(map(str, value.shape))
        raise invalid(f"{name} must be a scalar, but got shape[{shape}]")
    return F32(value.reshape(-1)[0])


def round_away(x: Array) -> Array:
    """The nearest whole numbers of a float32 array, halves away from 0."""
    half = np.asarray(np.copysign(_BELOW_HALF, x))
    np.add(half, x, out=half)
    np.trunc(half, out=half)
    return half


# ---------------------------------------------------------------- one number
def _round(x: float) -> int:
    """The nearest whole number, halves away from 0."""
    whole = int(x)
    return whole + (abs(x - whole) >= 0.5) * (1 if x > 0 else -1)


def _width(low: np.float32, high: np.float32, kind: Integers) -> float:
    """What one integer more stands for, by one step more than there are."""
    count = kind.steps + 1
    return float(high - low) * (count / (count - 1.0)) / count


def unclamped(value: np.float32, low: np.float32, high: np.float32, kind: Integers) -> int:
    """The integer that stands for a number; it may lie outside of the type."""
    if low == high:
        return kind.lowest
    count = kind.steps + 1
    scale = count / (float(high - low) * (count / (count - 1.0)))
    return _round(float(value) * scale) - _round(float(low) * scale) + kind.lowest


def zero_point(low: np.float32, high: np.float32, kind: Integers) -> int:
    """The integer that stands for 0; it may lie outside of the type."""
    return unclamped(F32(0), low, high, kind)


def clamped(value: np.float32, low: np.float32, high: np.float32, kind: Integers) -> int:
    """The integer of the type that stands for a number, or comes nearest."""
    return min(max(unclamped(value, low, high, kind), kind.lowest), kind.highest)


def number(x: Any, low: np.float32, high: np.float32, kind: Integers) -> Any:
    """The float32 numbers that integers stand for, computed in double precision."""
    if low == high:
        return np.full(np.shape(x), low, F32)[()]
    width = _width(low, high, kind)
    narrow = F32(width)
    start = float(F32(_round(float(low / narrow))) * narrow)
    return np.asarray(start + (np.asarray(x, np.float64) - kind.lowest) * width).astype(F32)[()]


# ---------------------------------------------------------------- arrays
def dequantized(x: Array, low: np.float32, high: np.float32, kind: Integers) -> Array:
    """The float32 numbers that an array of integers stands for."""
    scale = F32(float(high - low) / kind.steps)
    start = low if low == high else F32(_round(float(low / scale))) * scale
    out = x.astype(F32)
    out *= scale
    out += start - F32(kind.lowest) * scale
    return out


def _bytes(begin: int, end: int, out: Array, x: Array, scale: Array, start: int) -> None:
    for i in range(begin, end):
        # Whatever is farther away is the last byte too, and what is no number the first.
        level = min(max(_LEAST, x[i] * scale[0]), _MOST)
        half = single(_HALF) if level >= 0.0 else single(_ABOVE)
        out[i] = min(max(int(level + half) - start, 0), 255)


_BYTES: Final = Looped(_bytes)
_LEAST: Final = -1.0e6
_MOST: Final = 1.0e6
_HALF: Final = float(_BELOW_HALF)
_ABOVE: Final = -_HALF


def quantized_bytes(x: Array, low: np.float32, high: np.float32) -> Array:
    """The unsigned bytes that come nearest to an array of float32 numbers."""
    if low < high:
        scale = F32(255 / float(high - low))
        start = _round(float(low * scale))
        out = np.empty(x.shape, np.uint8)
        # Nearer to 0, float32 holds all that is added up on the way.
        near = abs(start) < 1 << 16 and x.dtype == F32
        if near and _BYTES(x.size, x.size * _STEPS, out, x, np.array([scale]), start):
            return out
    with np.errstate(invalid="ignore"):
        return quantized(x, low, high, integers(np.uint8)).astype(np.uint8)


def quantized(x: Array, low: np.float32, high: np.float32, kind: Integers) -> Array:
    """The integers of a type that come nearest to an array of float32 numbers, as int32."""
    scale = F32(0) if low == high else F32(kind.steps / float(high - low))
    out = round_away(x * scale)
    out -= F32(_round(float(low * scale))) - F32(kind.lowest)
    np.clip(out, *kind.bounds, out=out)
    return out.astype(np.int32)
