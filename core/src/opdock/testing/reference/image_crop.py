"""Crops, a pixel at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]
Corner = tuple[int, int, float, float, float]
"""Row, column, weight, and how the weight changes with the sample's place down and right."""


def _place(start: float, end: float, length: int, i: int, count: int) -> float:
    """Where sample `i` of a box lies among `length` pixels."""
    if count == 1:
        return 0.5 * (start + end) * (length - 1)
    return start * (length - 1) + i * (end - start) * (length - 1) / (count - 1)


def _corners(y: float, x: float, nearest: bool) -> list[Corner]:
    """The pixels that a sample is made of."""
    if nearest:
        return [(math.floor(y + 0.5), math.floor(x + 0.5), 1.0, 0.0, 0.0)]
    top, left = math.floor(y), math.floor(x)
    down, right = y - top, x - left
    rows = ((top, 1 - down, -1), (math.ceil(y), down, 1))
    columns = ((left, 1 - right, -1), (math.ceil(x), right, 1))
    return [(r, c, a * b, da * b, a * db) for r, a, da in rows for c, b, db in columns]


def _sample(
    box: Array, shape: tuple[int, ...], i: int, j: int, size: tuple[int, ...]
) -> tuple[float, float] | None:
    """Where a sample lies; None outside the image."""
    y = _place(float(box[0]), float(box[2]), shape[0], i, size[0])
    x = _place(float(box[1]), float(box[3]), shape[1], j, size[1])
    return (y, x) if 0 <= y <= shape[0] - 1 and 0 <= x <= shape[1] - 1 else None


@reference("CropAndResize")
def crop_and_resize(
    attrs: Attrs, image: Array, boxes: Array, which: Array, crop_size: Array
) -> Array:
    """Samples of boxes."""
    size = (int(crop_size[0]), int(crop_size[1]))
    out = np.full((len(boxes), *size, image.shape[3]), attrs["extrapolation_value"], np.float64)
    for n, i, j in np.ndindex(len(boxes), *size):
        at = _sample(boxes[n], image.shape[1:3], i, j, size)
        if at is not None:
            corners = _corners(*at, attrs["method"] == "nearest")
            pixels = image[int(which[n])]
            out[n, i, j] = sum(pixels[r, c] * w for r, c, w, _, _ in corners)
    return out


@reference("CropAndResizeGradImage")
def crop_and_resize_grad_image(
    attrs: Attrs, grads: Array, boxes: Array, which: Array, image_size: Array
) -> Array:
    """What samples give back to pixels."""
    out = np.zeros([int(d) for d in image_size], np.float64)
    for n, i, j in np.ndindex(*grads.shape[:3]):
        at = _sample(boxes[n], out.shape[1:3], i, j, grads.shape[1:3])
        if at is not None:
            for r, c, w, _, _ in _corners(*at, attrs["method"] == "nearest"):
                out[int(which[n]), r, c] += grads[n, i, j] * w
    return out


@reference("CropAndResizeGradBoxes")
def crop_and_resize_grad_boxes(
    attrs: Attrs, grads: Array, image: Array, boxes: Array, which: Array
) -> Array:
    """How samples change with the edges of boxes."""
    out = np.zeros((len(boxes), 4), np.float64)
    for n, i, j in np.ndindex(*grads.shape[:3]):
        at = _sample(boxes[n], image.shape[1:3], i, j, grads.shape[1:3])
        if at is None:
            continue
        pixels = image[int(which[n])]
        for r, c, _, down, right in _corners(*at, False):
            for axis, slope in enumerate((down, right)):
                count, length = grads.shape[1 + axis], image.shape[1 + axis]
                along = (i, j)[axis] / (count - 1) if count > 1 else 0.5
                change = float(np.sum(pixels[r, c] * grads[n, i, j])) * slope * (length - 1)
                out[n, axis] += change * (1 - along)
                out[n, 2 + axis] += change * along
    return out


@reference("ExtractGlimpse")
def extract_glimpse(attrs: Attrs, images: Array, size: Array, offsets: Array) -> Array:
    """Windows with zeros around the image: any other margin is noise."""
    height, width = int(size[0]), int(size[1])
    out = np.zeros((len(images), height, width, images.shape[3]), np.float64)
    for n, image in enumerate(images):
        starts = []
        for axis, wanted in enumerate((height, width)):
            at = float(offsets[n, axis])
            at *= image.shape[axis] if attrs["normalized"] else 1
            at = at / 2 + image.shape[axis] / 2 if attrs["centered"] else at
            starts.append(math.trunc(at - wanted / 2))
        for i, j in np.ndindex(height, width):
            y, x = starts[0] + i, starts[1] + j
            if 0 <= y < image.shape[0] and 0 <= x < image.shape[1]:
                out[n, i, j] = image[y, x]
    return out
