"""Images read at other places, a pixel at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _corners(image: Array, y: float, x: float) -> Iterator[tuple[int, int, float, float]]:
    """The pixels of the image around a place, and how near it is along rows and columns."""
    for r in (math.floor(y), math.floor(y) + 1):
        for c in (math.floor(x), math.floor(x) + 1):
            if 0 <= r < image.shape[0] and 0 <= c < image.shape[1]:
                yield r, c, 1 - abs(y - r), 1 - abs(x - c)


@reference("ImageProjectiveTransform", "ImageProjectiveTransformV2")
def image_projective_transform(
    attrs: Attrs, images: Array, transforms: Array, output_shape: Array | None = None
) -> Array:
    """Each pixel of the output, from where it comes."""
    size = images.shape[1:3] if output_shape is None else tuple(int(n) for n in output_shape)
    out = np.zeros((len(images), *size, images.shape[3]), np.float64)
    for n, i, j in np.ndindex(len(images), *size):
        a = [float(v) for v in transforms[n % len(transforms)]]
        depth = a[6] * j + a[7] * i + 1
        if depth == 0:
            continue
        x, y = (a[0] * j + a[1] * i + a[2]) / depth, (a[3] * j + a[4] * i + a[5]) / depth
        if attrs["interpolation"] == "NEAREST":
            y, x = (math.copysign(math.floor(abs(v) + 0.5), v) for v in (y, x))
        for r, c, down, right in _corners(images[n], y, x):
            out[n, i, j] += images[n, r, c].astype(np.float64) * down * right
    return out if images.dtype.kind == "f" else np.trunc(out)


def _each_point(data: Array, warp: Array) -> Iterator[tuple[tuple[int, ...], float, float]]:
    for place in np.ndindex(*warp.shape[:-1]):
        x, y = (float(v) for v in warp[place])
        if -1 < y < data.shape[1] and -1 < x < data.shape[2]:
            yield place, y, x


@reference("Resampler")
def resampler(attrs: Attrs, data: Array, warp: Array) -> Array:
    """Each point, from the pixels around it."""
    out = np.zeros((*warp.shape[:-1], data.shape[3]), np.float64)
    for place, y, x in _each_point(data, warp):
        for r, c, down, right in _corners(data[place[0]], y, x):
            out[place] += data[place[0], r, c].astype(np.float64) * down * right
    return out


@reference("ResamplerGrad")
def resampler_grad(attrs: Attrs, data: Array, warp: Array, grad: Array) -> tuple[Array, Array]:
    """What each point gives back to the pixels around it, and how it changes with its place."""
    on_data, on_warp = np.zeros(data.shape, np.float64), np.zeros(warp.shape, np.float64)
    for place, y, x in _each_point(data, warp):
        for r, c, down, right in _corners(data[place[0]], y, x):
            met = float(np.dot(grad[place].astype(np.float64), data[place[0], r, c]))
            on_data[place[0], r, c] += grad[place].astype(np.float64) * down * right
            on_warp[place][0] += met * down * math.copysign(1, c - x)
            on_warp[place][1] += met * right * math.copysign(1, r - y)
    return on_data, on_warp
