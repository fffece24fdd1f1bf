"""Crops of images and their gradients as loops over boxes.

Where samples lie is computed in single precision, step by step as the portable kernels do it: one
that is at the very edge of an image is inside for both.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Final

from opdock_cpu.jit.looped import Array, Looped, double, single

__all__ = ["BOXES", "CROPS", "IMAGE"]


def _place(first: float, last: float, sample: int, samples: int, length: int) -> float:
    """Where a sample of a box lies along an axis of so many pixels."""
    step = (last - first) * (length - 1) / max(samples - 1, 1)
    at = first * (length - 1) + sample * step
    if samples == 1:
        at = (first + last) * 0.5 * (length - 1)
    return at


def _inside(at: float, length: int) -> bool:
    """Whether that is in the image; a NaN is not."""
    return at >= 0 and at <= length - 1


def _crops(
    begin: int, end: int, out: Array, pixels: Array, boxes: Array, which: Array,
    rows: int, columns: int, height: int, width: int, depth: int, nearest: int, beyond: float,
) -> None:  # fmt: skip
    """A turn is a box: its crop, `beyond` where it reaches out of the image."""
    for b in range(begin, end):
        y1, x1, y2, x2 = boxes[4 * b], boxes[4 * b + 1], boxes[4 * b + 2], boxes[4 * b + 3]
        for i in range(rows):
            y = _place(y1, y2, i, rows, height)
            for j in range(columns):
                at = ((b * rows + i) * columns + j) * depth
                x = _place(x1, x2, j, columns, width)
                if not (_inside(y, height) and _inside(x, width)):
                    for c in range(depth):
                        out[at + c] = beyond
                    continue
                if nearest > 0:
                    row = which[b] * height + min(floor(y + 0.5), height - 1)
                    near = (row * width + min(floor(x + 0.5), width - 1)) * depth
                    for c in range(depth):
                        out[at + c] = single(pixels[near + c])
                    continue
                above = (which[b] * height + floor(y)) * width * depth
                below = (which[b] * height + ceil(y)) * width * depth
                left, beside = floor(x) * depth, ceil(x) * depth
                under, over = y - floor(y), x - floor(x)
                for c in range(depth):
                    first = single(pixels[above + left + c])
                    upper = first + (single(pixels[above + beside + c]) - first) * over
                    first = single(pixels[below + left + c])
                    lower = first + (single(pixels[below + beside + c]) - first) * over
                    out[at + c] = upper + (lower - upper) * under


def _image(
    begin: int, end: int, out: Array, grad: Array, boxes: Array, which: Array,
    count: int, rows: int, columns: int, height: int, width: int, depth: int, nearest: int,
) -> None:  # fmt: skip
    """A turn is an image: what crops got of its pixels goes back to them."""
    for image in range(begin, end):
        for b in range(count):
            if which[b] != image:
                continue
            y1, x1, y2, x2 = boxes[4 * b], boxes[4 * b + 1], boxes[4 * b + 2], boxes[4 * b + 3]
            for i in range(rows):
                y = _place(y1, y2, i, rows, height)
                if not _inside(y, height):
                    continue
                for j in range(columns):
                    x = _place(x1, x2, j, columns, width)
                    if not _inside(x, width):
                        continue
                    g = ((b * rows + i) * columns + j) * depth
                    if nearest > 0:
                        row = min(floor(y + 0.5), height - 1)
                        at = ((image * height + row) * width) * depth
                        at += min(floor(x + 0.5), width - 1) * depth
                        for c in range(depth):
                            out[at + c] = out[at + c] + grad[g + c]
                        continue
                    low, high = floor(y), ceil(y)
                    left, beside = floor(x), ceil(x)
                    under, over = y - low, x - left
                    above = (image * height + low) * width * depth
                    below = (image * height + high) * width * depth
                    for c in range(depth):
                        upper, lower = grad[g + c] * (1 - under), grad[g + c] * under
                        at = above + left * depth + c
                        out[at] = out[at] + upper * (1 - over)
                        at = above + beside * depth + c
                        out[at] = out[at] + upper * over
                        at = below + left * depth + c
                        out[at] = out[at] + lower * (1 - over)
                        at = below + beside * depth + c
                        out[at] = out[at] + lower * over


def _boxes(
    begin: int, end: int, out: Array, grad: Array, pixels: Array, boxes: Array, which: Array,
    rows: int, columns: int, height: int, width: int, depth: int,
) -> None:  # fmt: skip
    """A turn is a box: how its crop changes with its edges."""
    for b in range(begin, end):
        y1, x1, y2, x2 = boxes[4 * b], boxes[4 * b + 1], boxes[4 * b + 2], boxes[4 * b + 3]
        first_y, first_x, last_y, last_x = double(0), double(0), double(0), double(0)
        for i in range(rows):
            y = _place(y1, y2, i, rows, height)
            if not _inside(y, height):
                continue
            for j in range(columns):
                x = _place(x1, x2, j, columns, width)
                if not _inside(x, width):
                    continue
                low, left = floor(y), floor(x)
                under, over = y - low, x - left
                above = (which[b] * height + low) * width * depth
                below = (which[b] * height + ceil(y)) * width * depth
                near, far = left * depth, ceil(x) * depth
                g = ((b * rows + i) * columns + j) * depth
                along_y, along_x = single(0), single(0)
                for c in range(depth):
                    upper_left = single(pixels[above + near + c])
                    upper_right = single(pixels[above + far + c])
                    lower_left = single(pixels[below + near + c])
                    lower_right = single(pixels[below + far + c])
                    step = (1 - over) * (lower_left - upper_left)
                    along_y += grad[g + c] * (step + over * (lower_right - upper_right))
                    step = (1 - under) * (upper_right - upper_left)
                    along_x += grad[g + c] * (step + under * (lower_right - lower_left))
                # How far the sample moves with the first edge and with the last.
                part = double(i) / (rows - 1) if rows > 1 else 0.5
                first_y += along_y * (1 - part) * (height - 1)
                last_y += along_y * part * (height - 1)
                part = double(j) / (columns - 1) if columns > 1 else 0.5
                first_x += along_x * (1 - part) * (width - 1)
                last_x += along_x * part * (width - 1)
        out[4 * b] = first_y
        out[4 * b + 1] = first_x
        out[4 * b + 2] = last_y
        out[4 * b + 3] = last_x


CROPS: Final = Looped(_crops)
IMAGE: Final = Looped(_image)
BOXES: Final = Looped(_boxes)
