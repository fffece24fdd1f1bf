"""Resizes, a pixel at a time: each is a weighted sum of old pixels, along rows and columns.

Positions are in single precision, as they decide which pixels count; all else is in double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]
Line = list[tuple[int, float]]
"""Old lines and their weights."""
Lines = Callable[[int, int, int], Line]
"""What new line `i` is made of, from the numbers of old lines and of new ones."""

_ONE, _HALF = np.float32(1), np.float32(0.5)


def _distance(old: int, new: int, align: bool) -> np.float32:
    if align and new > 1:
        return np.float32(old - 1) / np.float32(new - 1)
    return np.float32(old) / np.float32(new)


def _place(i: int, scale: np.float32, half: bool) -> np.float32:
    return (np.float32(i) + _HALF) * scale - _HALF if half else np.float32(i) * scale


def _kept(i: int, count: int) -> int:
    return min(max(i, 0), count - 1)


# ---------------------------------------------------------------- lines
def nearest(attrs: Attrs) -> Lines:
    """The one nearest line."""
    align, half = attrs["align_corners"], attrs["half_pixel_centers"]

    def line(i: int, old: int, new: int) -> Line:
        scale = _distance(old, new, align)
        at = (np.float32(i) + _HALF) * scale if half else np.float32(i) * scale
        return [(_kept(math.floor(at + _HALF) if align else math.floor(at), old), 1.0)]

    return line


def bilinear(attrs: Attrs) -> Lines:
    """The two lines around."""
    align, half = attrs["align_corners"], attrs["half_pixel_centers"]

    def line(i: int, old: int, new: int) -> Line:
        at = _place(i, _distance(old, new, align), half)
        part = float(at) - math.floor(at)
        return [(_kept(math.floor(at), old), 1 - part), (_kept(math.ceil(at), old), part)]

    return line


def bicubic(attrs: Attrs) -> Lines:
    """The four lines around, at steps of 1 / 1024."""
    align, half = attrs["align_corners"], attrs["half_pixel_centers"]
    a = -0.5 if half else -0.75

    def weight(x: float) -> float:
        if x <= 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def line(i: int, old: int, new: int) -> Line:
        at = _place(i, _distance(old, new, align), half)
        first = math.floor(at)
        part = float(np.rint((at - np.float32(first)) * np.float32(1024))) / 1024
        found = [
            (first + j, weight(distance))
            for j, distance in zip((-1, 0, 1, 2), (1 + part, part, 1 - part, 2 - part), strict=True)
        ]
        if half:
            found = [(j, w) for j, w in found if 0 <= j < old]
            total = sum(w for _, w in found)
            found = [(j, w / total) for j, w in found]
        return [(_kept(j, old), w) for j, w in found]

    return line


def area(attrs: Attrs) -> Lines:
    """All lines that are covered, by how much."""

    def line(i: int, old: int, new: int) -> Line:
        scale = _distance(old, new, attrs["align_corners"])
        if scale == 0:  # the mean of nothing
            return [(0, math.nan)]
        start, end = np.float32(i) * scale, np.float32(i + 1) * scale
        return [
            (_kept(j, old), (min(j + 1, float(end)) - max(j, float(start))) / float(scale))
            for j in range(math.floor(start), math.ceil(end))
        ]

    return line


_LINES = {
    "ResizeNearestNeighbor": nearest,
    "ResizeBilinear": bilinear,
    "ResizeBicubic": bicubic,
    "ResizeArea": area,
}


# ---------------------------------------------------------------- sums
def resized(x: Array, height: int, width: int, rows: Lines, columns: Lines) -> Array:
    """Images of a new size."""
    out = np.zeros((x.shape[0], height, width, x.shape[3]), np.float64)
    for i, j in np.ndindex(height, width):
        for y, down in rows(i, x.shape[1], height):
            for k, right in columns(j, x.shape[2], width):
                out[:, i, j] += x[:, y, k] * (down * right)
    return out


def given_back(grads: Array, height: int, width: int, rows: Lines, columns: Lines) -> Array:
    """What new pixels give back to the old ones."""
    out = np.zeros((grads.shape[0], height, width, grads.shape[3]), np.float64)
    for i, j in np.ndindex(*grads.shape[1:3]):
        for y, down in rows(i, height, grads.shape[1]):
            for k, right in columns(j, width, grads.shape[2]):
                out[:, y, k] += grads[:, i, j] * (down * right)
    return out


def _resize(name: str) -> Callable[..., Array]:
    def run(attrs: Attrs, images: Array, size: Array) -> Array:
        lines = _LINES[name](attrs)
        return resized(images, int(size[0]), int(size[1]), lines, lines)

    return run


for _name in _LINES:
    reference(_name)(_resize(_name))


@reference("ResizeBilinearGrad")
def resize_bilinear_grad(attrs: Attrs, grads: Array, original: Array) -> Array:
    """Back through bilinear interpolation."""
    lines = bilinear(attrs)
    return given_back(grads, original.shape[1], original.shape[2], lines, lines)


@reference("ResizeBicubicGrad")
def resize_bicubic_grad(attrs: Attrs, grads: Array, original: Array) -> Array:
    """Back through bicubic interpolation."""
    lines = bicubic(attrs)
    return given_back(grads, original.shape[1], original.shape[2], lines, lines)


@reference("ResizeNearestNeighborGrad")
def resize_nearest_neighbor_grad(attrs: Attrs, grads: Array, size: Array) -> Array:
    """Back through the choice of nearest pixels."""
    lines = nearest(attrs)
    return given_back(grads, int(size[0]), int(size[1]), lines, lines)


# ---------------------------------------------------------------- scale and translation
def _sinc(x: float) -> float:
    return 1.0 if x == 0 else math.sin(math.pi * x) / (math.pi * x)


def _cubic(x: float, inner: tuple[float, ...], outer: tuple[float, ...]) -> float:
    c = inner if x < 1 else outer
    return ((c[0] * x + c[1]) * x + c[2]) * x + c[3] if x < 2 else 0.0


_KERNELS: dict[str, tuple[float, Callable[[float], float]]] = {
    "lanczos1": (1, lambda x: _sinc(x) * _sinc(x) if x <= 1 else 0),
    "lanczos3": (3, lambda x: _sinc(x) * _sinc(x / 3) if x <= 3 else 0),
    "lanczos5": (5, lambda x: _sinc(x) * _sinc(x / 5) if x <= 5 else 0),
    "gaussian": (1.5, lambda x: math.exp(-2 * x * x) if x < 1.5 else 0),
    "box": (1, lambda x: 1 if x < 0.5 else 0.5 if x == 0.5 else 0),
    "triangle": (1, lambda x: max(1 - x, 0)),
    "keyscubic": (2, lambda x: _cubic(x, (1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2))),
    "mitchellcubic": (
        2,
        lambda x: _cubic(x, (7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)),
    ),
}


def _sampled(attrs: Attrs, scale: float, translation: float) -> Lines:
    radius, kernel = _KERNELS[attrs["kernel_type"].lower()]
    inverse = _ONE / np.float32(scale)
    wide = max(inverse, _ONE) if attrs["antialias"] else _ONE

    def line(i: int, old: int, new: int) -> Line:
        at = (np.float32(i) + _HALF) * inverse - inverse * np.float32(translation)
        if at < 0 or at > old:
            return []
        reach = np.float32(radius) * wide
        first = _kept(math.ceil(at - reach - _HALF), old)
        last = _kept(math.floor(at + reach - _HALF), old)
        found = [
            (j, kernel(abs((j + 0.5 - float(at)) / float(wide)))) for j in range(first, last + 1)
        ]
        total = sum(w for _, w in found)
        return [(j, w / total) for j, w in found] if total else []

    return line


@reference("ScaleAndTranslate")
def scale_and_translate(
    attrs: Attrs, images: Array, size: Array, scale: Array, translation: Array
) -> Array:
    """Images under a sampling kernel around each new pixel."""
    rows, columns = (_sampled(attrs, float(scale[i]), float(translation[i])) for i in range(2))
    return resized(images, int(size[0]), int(size[1]), rows, columns)


@reference("ScaleAndTranslateGrad")
def scale_and_translate_grad(
    attrs: Attrs, grads: Array, original: Array, scale: Array, translation: Array
) -> Array:
    """Back through `scale_and_translate`."""
    rows, columns = (_sampled(attrs, float(scale[i]), float(translation[i])) for i in range(2))
    return given_back(grads, original.shape[1], original.shape[2], rows, columns)
