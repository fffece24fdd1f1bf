"""Choosing among classes by the logarithms of their weights."""

from __future__ import annotations

import math
from math import exp
from typing import Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped, double

__all__ = ["choices"]

_NOTHING: Final = -math.inf
_TABLE_LIMIT: Final = 1 << 20
"""Comparisons held in memory at once."""


def _choose(
    begin: int, end: int, out: Array, cumulative: Array, logits: Array, draws: Array,
    classes: int, count: int,
) -> None:  # fmt: skip
    """A turn is a row; what is not finite has no weight."""
    for r in range(begin, end):
        top, total = double(_NOTHING), double(0)
        for c in range(r * classes, (r + 1) * classes):
            top = max(top, double(logits[c] if logits[c] - logits[c] == 0 else _NOTHING))
        for c in range(r * classes, (r + 1) * classes):
            weight = exp(double(logits[c]) - top)
            cumulative[c] = weight if logits[c] - logits[c] == 0 else 0
        for c in range(r * classes, (r + 1) * classes):
            total += cumulative[c]
            cumulative[c] = total
        for i in range(r * count, (r + 1) * count):
            low, high = r * classes, (r + 1) * classes
            while low < high:
                middle = (low + high) // 2
                if cumulative[middle] <= draws[i] * total:
                    low = middle + 1
                else:
                    high = middle
            out[i] = low - r * classes


_CHOOSE: Final = Looped(_choose)


def choices(logits: Array, draws: Array) -> Array:
    """The class of each draw.

    Args:
        logits: [rows, classes]; what is not finite has no weight.
        draws: float64 in [0, 1), [rows, n].

    Returns:
        int64, [rows, n].
    """
    classes = logits.shape[1]
    out, cumulative = np.empty(draws.shape, np.int64), np.empty(logits.shape)
    steps = 8.0 * logits.size + 8.0 * out.size * classes.bit_length()
    if logits.dtype.kind == "f" and logits.size:
        numbers = (classes, draws.shape[1])
        if _CHOOSE(len(logits), steps, out, cumulative, logits, draws, *numbers):
            return out
    return _by_tables(out, logits.astype(np.float64), draws)


def _by_tables(out: Array, wide: Array, draws: Array) -> Array:
    (rows, classes), count = wide.shape, draws.shape[1]
    finite = np.isfinite(wide)
    top = np.where(finite, wide, -np.inf).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.where(finite, np.exp(wide - top), 0.0)
    cumulative = np.cumsum(weights, axis=1)
    targets = draws * cumulative[:, -1:]
    if count * classes > _TABLE_LIMIT // 16:
        for row in range(rows):
            out[row] = np.searchsorted(cumulative[row], targets[row], side="right")
        return out
    step = max(1, _TABLE_LIMIT // (count * classes))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        below = cumulative[part, None, :] <= targets[part, :, None]
        out[part] = below.sum(axis=2)
    return out
