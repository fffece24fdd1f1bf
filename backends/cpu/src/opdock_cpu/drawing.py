"""Boxes drawn on images."""

from __future__ import annotations

import itertools
from typing import Final

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["draw"]


def _line(
    out: Array, colors: Array, color: int, start: int, step: int, first: int, last: int, depth: int
) -> None:
    """Pixels from `first` to `last`, so many elements apart, of one colour."""
    for p in range(first, last + 1):
        for c in range(depth):
            out[start + p * step + c] = colors[color * depth + c]


def _boxes(
    begin: int, end: int, out: Array, places: Array, colors: Array,
    count: int, height: int, width: int, depth: int, palette: int,
) -> None:  # fmt: skip
    """A turn is an image; what is outside of it is left out, and boxes that are inverted."""
    row = width * depth
    for image in range(begin, end):
        corner = image * height * row
        for k in range(count):
            b = 4 * (image * count + k)
            top, left, bottom, right = places[b], places[b + 1], places[b + 2], places[b + 3]
            if top > bottom or left > right or top >= height or left >= width:
                continue
            if bottom < 0 or right < 0:
                continue
            low, high = max(top, 0), min(bottom, height - 1)
            first, last = max(left, 0), min(right, width - 1)
            if top >= 0:
                at = corner + top * row
                _line(out, colors, k % palette, at, depth, first, last, depth)
            if bottom < height:
                at = corner + bottom * row
                _line(out, colors, k % palette, at, depth, first, last, depth)
            if left >= 0:
                at = corner + left * depth
                _line(out, colors, k % palette, at, row, low, high, depth)
            if right < width:
                at = corner + right * depth
                _line(out, colors, k % palette, at, row, low, high, depth)


_BOXES: Final = Looped(_boxes)


def draw(images: Array, places: Array, colors: Array) -> None:
    """Draws boxes, one after the other.

    Args:
        images: [batch, height, width, depth], contiguous, drawn on.
        places: int64, [batch, boxes, 4], the rows and columns of the first and the last corners.
        colors: [n, depth] of the images' type, taken in turn.
    """
    batch, height, width, depth = images.shape
    numbers = (places.shape[1], height, width, depth, len(colors))
    steps = places.size * (height + width)
    if images.size and _BOXES(batch, steps, images, places, colors, *numbers):
        return
    for canvas, boxes in zip(images, places, strict=True):
        for box, color in zip(boxes.tolist(), itertools.cycle(colors)):
            _draw(canvas, box, color)


def _draw(canvas: Array, box: list[int], color: Array) -> None:
    top, left, bottom, right = box
    height, width = canvas.shape[:2]
    if top > bottom or left > right or top >= height or left >= width or bottom < 0 or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            canvas[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            canvas[rows, column] = color
