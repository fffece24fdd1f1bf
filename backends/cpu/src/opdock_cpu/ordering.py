"""In which order numbers are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["descending"]

Array = npt.NDArray[Any]


def descending(rows: Array) -> Array:
    """The order of each row [rows, n] from large to small, equals by index; NaNs come first."""
    if rows.dtype in (np.float32, np.int32):
        # What sorts words without regard to equals is many times as quick: none are equal here.
        words = _ascending(rows).astype(np.uint64) ^ np.uint64(0xFFFFFFFF)
        words = words << np.uint64(32) | np.arange(rows.shape[-1], dtype=np.uint64)
        words.sort(axis=-1)
        return (words & np.uint64(0xFFFFFFFF)).astype(np.int64)
    # Reversing before and after keeps a stable ascending sort stable in descending order.
    return np.asarray(
        rows.shape[-1] - 1 - np.argsort(rows[:, ::-1], axis=-1, kind="stable")[:, ::-1]
    )


def _ascending(rows: Array) -> npt.NDArray[np.uint32]:
    """Whole numbers in the order of those of 32 bits; both zeros are one, NaNs are the largest."""
    if rows.dtype == np.int32:
        return rows.view(np.uint32) ^ np.uint32(1 << 31)
    bits = (rows + np.float32(0)).view(np.uint32)
    flipped = np.where(bits >> 31, np.uint32(0xFFFFFFFF), np.uint32(1 << 31))
    return np.where(np.isnan(rows), np.uint32(0xFFFFFFFF), bits ^ flipped)
