"""Projective transforms of images as one loop over the pixels of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.jit.looped import Array, Looped, lower, single
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()


# ---------------------------------------------------------------- of one pixel
def _source(transforms: Array, a: int, x: int, y: int) -> tuple[Any, Any]:
    """Where in the input a pixel comes from: y and x, in single precision."""
    column, row = single(x), single(y)
    depth = transforms[a + 6] * column + transforms[a + 7] * row + single(1.0)
    found_y, found_x = single(-2.0), single(-2.0)
    if depth != 0:
        found_x = (transforms[a] * column + transforms[a + 1] * row + transforms[a + 2]) / depth
        found_y = (transforms[a + 3] * column + transforms[a + 4] * row + transforms[a + 5]) / depth
    return found_y, found_x


def _inside(row: Any, column: Any, height: int, width: int) -> Any:
    return row >= 0 and row <= height - 1 and column >= 0 and column <= width - 1


def _part(
    images: Array, row: Any, column: Any, weight: Any, first: int, height: int, width: int,
    channels: int,
) -> Any:  # fmt: skip
    """What one of the four pixels around gives; one that is zero nothing, whatever its weight."""
    value = single(0.0)
    if _inside(row, column, height, width):
        value = single(images[first + (int(row) * width + int(column)) * channels])
        value = value * weight if value != 0 else value
    return value


def _mixed(
    images: Array, y: Any, x: Any, first: int, height: int, width: int, channels: int
) -> Any:
    top, left = lower(y), lower(x)
    bottom, right = top + single(1.0), left + single(1.0)
    up, down, west, east = bottom - y, y - top, right - x, x - left
    total = _part(images, top, left, up * west, first, height, width, channels)
    total += _part(images, top, right, up * east, first, height, width, channels)
    total += _part(images, bottom, left, down * west, first, height, width, channels)
    total += _part(images, bottom, right, down * east, first, height, width, channels)
    return total


def _rounded(x: Any) -> Any:
    """To the nearest whole number, halves away from zero."""
    size = abs(x)
    whole = lower(size)
    whole = whole + single(1.0) if size - whole >= single(0.5) else whole
    return whole if x >= 0 else -whole


# ---------------------------------------------------------------- loops; a turn is a row
def _real(
    begin: int, end: int, out: Array, images: Array, transforms: Array, height: int, width: int,
    channels: int, rows: int, columns: int, each: int,
) -> None:  # fmt: skip
    for t in range(begin, end):
        image, row = t // rows, t % rows
        for column in range(columns):
            y, x = _source(transforms, image * each, column, row)
            for c in range(channels):
                first = image * height * width * channels + c
                out[(t * columns + column) * channels + c] = _mixed(
                    images, y, x, first, height, width, channels
                )


def _whole(
    begin: int, end: int, out: Array, images: Array, transforms: Array, height: int, width: int,
    channels: int, rows: int, columns: int, each: int,
) -> None:  # fmt: skip
    """The same, cut off towards zero."""
    for t in range(begin, end):
        image, row = t // rows, t % rows
        for column in range(columns):
            y, x = _source(transforms, image * each, column, row)
            for c in range(channels):
                first = image * height * width * channels + c
                out[(t * columns + column) * channels + c] = int(
                    _mixed(images, y, x, first, height, width, channels)
                )


def _near(
    begin: int, end: int, out: Array, images: Array, transforms: Array, height: int, width: int,
    channels: int, rows: int, columns: int, each: int,
) -> None:  # fmt: skip
    """The nearest pixel."""
    for t in range(begin, end):
        image, row = t // rows, t % rows
        for column in range(columns):
            y, x = _source(transforms, image * each, column, row)
            y, x = _rounded(y), _rounded(x)
            to = (t * columns + column) * channels
            if _inside(y, x, height, width):
                first = ((image * height + int(y)) * width + int(x)) * channels
                for c in range(channels):
                    out[to + c] = images[first + c]
            else:
                for c in range(channels):
                    out[to + c] = 0


_REAL, _WHOLE, _NEAR = Looped(_real), Looped(_whole), Looped(_near)
_STEPS: Final = 16
"""How much work a pixel is."""


@table.binder("ImageProjectiveTransform")
@table.binder("ImageProjectiveTransformV2", host_inputs=("output_shape",))
def image_projective_transform(sig: NodeSig) -> Callable[..., Array]:
    """Each pixel of the output from where its transform says, in single precision."""
    plain = portable_kernel(sig)
    loop = _WHOLE if sig.in_dtypes[0].base_dtype.is_integer else _REAL
    if sig.attrs["interpolation"] == "NEAREST":
        loop = _NEAR

    def run(images: Array, transforms: Array, *output_shape: Any) -> Any:
        size = tuple(checks.ints(output_shape[0])) if output_shape else images.shape[1:3]
        fits = images.ndim == 4 and images.size and len(size) == 2 and min(size) > 0
        if not fits or transforms.shape not in ((1, 8), (len(images), 8)):
            return plain(images, transforms, *output_shape)
        out = np.empty((len(images), *size, images.shape[3]), images.dtype)
        each = 8 if len(transforms) > 1 else 0
        numbers = (*images.shape[1:], *size, each)
        turns = len(images) * size[0]
        if not loop(turns, _STEPS * out.size, out, images, transforms, *numbers):
            return plain(images, transforms, *output_shape)
        return out

    return run
