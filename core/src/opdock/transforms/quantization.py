"""Ranges of numbers, and numbers as bytes in them, as TensorFlow's MIN_FIRST mode has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes

__all__ = ["constant_range", "to_bytes", "widened"]

Array = np.ndarray[Any, Any]


def widened(low: np.float32, high: np.float32) -> tuple[np.float32, np.float32]:
    """A range that has a width, even if all numbers are one."""
    if low != high:
        return low, high
    if abs(low) < 1e-6:
        return low, np.float32(low + 1)
    return (low, np.float32(2 * low)) if low > 0 else (np.float32(2 * low), high)


def constant_range(value: Array) -> tuple[np.float32, np.float32]:
    """The range of a constant, which has 0 in it: not every quantized op does without."""
    return widened(min(value.min(), np.float32(0)), max(value.max(), np.float32(0)))


def to_bytes(value: Array, low: np.float32, high: np.float32) -> Array:
    """Numbers as quint8 of a range."""
    scale = 255 / (np.float64(high) - np.float64(low))
    steps = _rounded(value * scale) - _rounded(low * scale)
    as_bytes: Array = np.clip(steps, 0, 255).astype(np.uint8).view(dtypes.quint8.np)
    return as_bytes


def _rounded(value: Any) -> Array:
    """To the nearest integer, halves away from 0."""
    return np.asarray(np.trunc(value + np.copysign(0.5, value)))
