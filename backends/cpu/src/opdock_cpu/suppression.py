"""Choosing boxes by score without those that overlap a better one, of one list or of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["Overlaps", "chosen", "overlaps", "suppressed"]

Overlaps = Callable[[int], Array]
"""How much a box overlaps each of all boxes."""
_USUAL: Final = 64
"""About with how many chosen boxes each other one is compared."""


def _corners(boxes: Array) -> tuple[Array, Array, Array]:
    """The lower corners of boxes [..., 4], the upper ones, and the areas; any two may be given."""
    low = np.minimum(boxes[..., :2], boxes[..., 2:])
    high = np.maximum(boxes[..., :2], boxes[..., 2:])
    return low, high, np.prod(high - low, axis=-1, dtype=boxes.dtype)


def overlaps(boxes: Array) -> Overlaps:
    """Intersection over union, 0 for boxes without an area."""
    low, high, area = _corners(boxes)

    def of(i: int) -> Array:
        sides = np.minimum(high, high[i]) - np.maximum(low, low[i])
        common = np.prod(np.maximum(sides, 0), axis=1, dtype=boxes.dtype)
        counts = (area > 0) & (area[i] > 0)
        union = np.where(counts, area + area[i] - common, boxes.dtype.type(1))
        found: Array = np.where(counts, common / union, boxes.dtype.type(0))
        return found

    return of


def chosen(
    scores: Array, count: int, overlaps: Overlaps, limit: Any, least: Any, sigma: Any
) -> tuple[list[int], list[Any]]:
    """The indices and scores of at most `count` boxes, the best first.

    A box that one chosen before overlaps by `limit` or more is dropped; with a `sigma` above 0 the
    others' scores sink by how much they overlap.
    """
    current = np.where(scores > least, scores, -np.inf).astype(scores.dtype)
    alive = scores > least
    scale = -0.5 / float(sigma) if sigma > 0 else 0.0
    indices: list[int] = []
    values: list[Any] = []
    while len(indices) < count and alive.any():
        best = int(np.argmax(np.where(alive, current, -np.inf)))
        if not alive[best]:  # all that are left have a score of minus infinity
            best = int(np.argmax(alive))
        indices.append(best)
        values.append(current[best])
        alive[best] = False
        overlap = overlaps(best)
        if scale:
            sunk = np.exp(np.float32(scale) * overlap.astype(np.float32) ** 2)
            current = np.where(alive, current * sunk, current).astype(scores.dtype)
            alive &= current > least
        alive &= ~(overlap >= limit)
    return indices, values


def _suppress(
    begin: int, end: int, kept: Array, found: Array, low: Array, high: Array, area: Array,
    alive: Array, length: int, most: int, limit: float,
) -> None:  # fmt: skip
    """Of each list the first `alive` boxes count; they come in the order of their scores."""
    for g in range(begin, end):
        count = 0
        for i in range(g * length, g * length + alive[g]):
            if count >= most:
                break
            clear = True
            for k in range(count):
                j = g * length + kept[g * most + k]
                height = min(high[2 * i], high[2 * j]) - max(low[2 * i], low[2 * j])
                width = min(high[2 * i + 1], high[2 * j + 1]) - max(low[2 * i + 1], low[2 * j + 1])
                common = max(height, 0) * max(width, 0)
                overlap = common * 0
                if area[i] > 0 and area[j] > 0:
                    overlap = common / (area[i] + area[j] - common)
                if overlap >= limit:
                    clear = False
                    break
            if clear:
                kept[g * most + count] = i - g * length
                count += 1
        found[g] = count


_SUPPRESS: Final = Looped(_suppress)


def suppressed(
    boxes: Array, scores: Array, most: int, limit: Any, least: Any
) -> tuple[Array, Array]:
    """The best boxes of many lists; one that a better one overlaps by `limit` or more is dropped.

    Args:
        boxes: single precision, [lists, n, 4].
        scores: single precision, [lists, n].
        most: how many are chosen of each list at most.
        limit: how much they may overlap.
        least: the scores that count are above it.

    Returns:
        Their numbers, [lists, most], and how many there are of each list.
    """
    lists, length = scores.shape
    most = min(most, length)
    order = np.argsort(-scores, axis=1, kind="stable")
    # Scores that do not count come last, those that are NaN among them.
    alive = (scores > least).sum(axis=1)
    dead = ~(scores > least)
    if dead.any():
        order = np.argsort(np.where(dead, np.inf, -scores), axis=1, kind="stable")
    sorted_boxes = np.take_along_axis(boxes, order[..., None], axis=1)
    kept, found = np.zeros((lists, most), np.int64), np.zeros(lists, np.int64)
    steps = lists * length * min(most, _USUAL)
    arrays = (kept, found, *_corners(sorted_boxes), alive)
    if not _SUPPRESS(lists, steps, *arrays, length, most, float(limit)):
        for g in range(lists):
            of, ranks = overlaps(sorted_boxes[g]), -np.arange(length, dtype=np.float64)
            first, _ = chosen(ranks, most, of, limit, -float(alive[g]), 0)
            kept[g, : len(first)], found[g] = first, len(first)
    return np.take_along_axis(order, kept, axis=1), found
