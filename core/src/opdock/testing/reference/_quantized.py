"""What the oracles of quantized ops share: numbers to integers of a range, and back.

TensorFlow does so in float32 for tensors and in double precision for single numbers. In 32-bit
integers the difference shows, so it is part of the definition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

F = np.float32


def limits(dtype: Any) -> tuple[int, int]:
    """The lowest and the highest integer of a type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def away(x: Any) -> int:
    """The nearest whole number, halves away from 0."""
    return int(math.copysign(math.floor(abs(float(x)) + 0.5), float(x)))


def clamp(x: int, dtype: Any) -> int:
    """The nearest integer of a type."""
    low, high = limits(dtype)
    return min(max(x, low), high)


def integer(x: float, low: float, high: float, dtype: Any) -> int:
    """The integer that stands for a number, clamped to nothing."""
    first, last = limits(dtype)
    if low == high:
        return first
    scale = (last - first) / float(F(high) - F(low))
    return away(x * scale) - away(low * scale) + first


def number(q: int, low: float, high: float, dtype: Any) -> float:
    """The number that an integer stands for; 0 is moved onto the integers."""
    first, last = limits(dtype)
    if low == high:
        return low
    step = float(F(high) - F(low)) / (last - first)
    start = float(F(away(F(low) / F(step))) * F(step))
    return float(F(start + (q - first) * step))


def integer32(x: Any, low: float, high: float, dtype: Any) -> int:
    """As `integer`, but clamped, and worked out in float32."""
    first, last = limits(dtype)
    scale = F(0) if low == high else F((last - first) / float(F(high) - F(low)))
    found = F(away(F(x) * scale)) - (F(away(F(low) * scale)) - F(first))
    return int(min(max(found, F(first)), F(min(last, 2147483520))))


def number32(q: int, low: float, high: float, dtype: Any) -> Any:
    """As `number`, but worked out in float32."""
    first, last = limits(dtype)
    step = F(float(F(high) - F(low)) / (last - first))
    start = F(low) if low == high else F(away(F(low) / step)) * step
    return (start - F(first) * step) + F(q) * step


def moved(q: int, source: tuple[Any, Any, Any], target: tuple[Any, Any, Any]) -> int:
    """An integer of one (low, high, type) as one of another.

    From 32 to 8 unsigned bits that is fixed-point arithmetic of 16 bits.
    """
    low, high, dtype = source
    new_low, new_high, new_dtype = target
    if dtype != np.int32 or new_dtype != np.uint8:
        return integer32(number32(q, low, high, dtype), new_low, new_high, new_dtype)
    spread, new_spread = float(F(high) - F(low)), float(F(new_high) - F(new_low))
    if new_spread == 0:
        return 0
    scale = int(255.0 * 65536 * spread / new_spread)
    middle = int(F(float(F(low) + F(high)) / 2) * F(255.0 / new_spread) * F(65536))
    start = int(65536 * (float(F(new_low)) * 255.0) / new_spread)
    return min(max((q * scale // 2**32 + middle - start + 32768) // 65536, 0), 255)


def each(fn: Any, array: Any) -> Any:
    """`fn` of every element, as whole numbers."""
    flat = [fn(v) for v in array.reshape(-1).tolist()]
    return np.array(flat, np.int64).reshape(array.shape)
