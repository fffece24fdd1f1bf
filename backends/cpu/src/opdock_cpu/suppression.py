"""Choosing boxes by score without those that overlap a better one, of one list or of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.ordering import descending

__all__ = ["Overlaps", "chosen", "overlaps", "suppressed"]

_LONG: Final = 64
"""Boxes of a list that NumPy sorts faster than a heap gives them away."""
_STEPS: Final = 16
"""How much work a box is, about."""

Overlaps = Callable[[int], Array]
"""How much a box overlaps each of all boxes."""


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


def _behind(scores: Array, first: int, a: int, b: int) -> bool:
    """Whether a score comes after another: it is lower, or later among equals."""
    one, other = scores[first + a], scores[first + b]
    return one < other or (one == other and a > b)


def _sink(heap: Array, scores: Array, first: int, start: int, size: int) -> None:
    """Has a box go down in a heap, the best of which is on top, to where it belongs."""
    at, child = start, 2 * start + 1
    mine = heap[first + start]
    while child < size:
        if child + 1 < size and _behind(
            scores, first, heap[first + child], heap[first + child + 1]
        ):
            child += 1
        if not _behind(scores, first, mine, heap[first + child]):
            break
        heap[first + at] = heap[first + child]
        at = child
        child = 2 * at + 1
    heap[first + at] = mine


def _suppress(
    begin: int, end: int, kept: Array, found: Array, heap: Array, corners: Array, boxes: Array,
    scores: Array, length: int, most: int, ordered: int, limit: float, least: float,
) -> None:  # fmt: skip
    """A turn is a list; `corners` are those of the boxes that are kept, and their areas.

    The boxes are in order in the `heap`, or it is made one.
    """
    for g in range(begin, end):
        first, size, count, at = g * length, 0, 0, 0
        for i in range(length):
            if scores[first + i] > least:
                if ordered == 0:
                    heap[first + size] = i
                size += 1
        for i in range(size // 2 - 1 if ordered == 0 else -1, -1, -1):
            _sink(heap, scores, first, i, size)
        while at < size and count < most:
            best = heap[first + at]
            if ordered > 0:
                at += 1
            else:
                size -= 1
                heap[first] = heap[first + size]
                _sink(heap, scores, first, 0, size)
            i, mine = 4 * (first + best), 5 * (g * most + count)
            low_y, high_y = min(boxes[i], boxes[i + 2]), max(boxes[i], boxes[i + 2])
            low_x, high_x = min(boxes[i + 1], boxes[i + 3]), max(boxes[i + 1], boxes[i + 3])
            area = (high_y - low_y) * (high_x - low_x)
            clear = True
            for k in range(count):
                j = 5 * (g * most + k)
                height = min(high_y, corners[j + 2]) - max(low_y, corners[j])
                width = min(high_x, corners[j + 3]) - max(low_x, corners[j + 1])
                common = max(height, 0) * max(width, 0)
                overlap = common * 0
                if area > 0 and corners[j + 4] > 0:
                    overlap = common / (area + corners[j + 4] - common)
                if overlap >= limit:
                    clear = False
                    break
            if clear:
                kept[g * most + count] = best
                corners[mine] = low_y
                corners[mine + 1] = low_x
                corners[mine + 2] = high_y
                corners[mine + 3] = high_x
                corners[mine + 4] = area
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
    kept, found = np.zeros((lists, most), np.int64), np.zeros(lists, np.int64)
    heap, ordered = np.empty((lists, length), np.int64), length > _LONG
    if ordered:  # boxes that overlap one another are all gone through
        heap = descending(np.where(scores > least, scores, -np.inf).astype(scores.dtype))
    corners = np.empty((lists, most, 5), boxes.dtype)
    arrays = kept, found, heap, corners, boxes, scores
    steps = _STEPS * scores.size
    if not _SUPPRESS(lists, steps, *arrays, length, most, int(ordered), float(limit), float(least)):
        for g in range(lists):
            first, _ = chosen(scores[g], most, overlaps(boxes[g]), limit, least, 0)
            kept[g, : len(first)], found[g] = first, len(first)
    return kept, found
