"""Hue, saturation and value of images, a pixel at a time, and contrast, an image at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit.looped import Array, Looped, double, larger, lower, single
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_SIXTH: Final = 1 / 6
_THIRD: Final = 1 / 3
_TWO_THIRDS: Final = 2 / 3
_COST: Final = 8
"""Steps of a pixel's channel."""


def _hue(r: Any, g: Any, b: Any) -> tuple[Any, Any, Any]:
    """(hue in [0, 1), value, range) of a pixel; grey has hue zero."""
    value = larger(larger(r, g), b)
    spread = value + larger(larger(-r, -g), -b)
    unit = _SIXTH / (spread if spread > 0 else 1)
    hue = unit * (r - g) + _TWO_THIRDS
    if g == value:
        hue = unit * (b - r) + _THIRD
    if r == value:
        hue = unit * (g - b)
    if not spread > 0:
        hue = 0
    if hue < 0:
        hue = hue + 1
    return hue, value, spread


def _saturation(value: Any, spread: Any) -> Any:
    return spread / value if value > 0 else 0


def _limited(part: Any) -> Any:
    return min(max(part, 0), 1)


def _sectors(hue: Any) -> tuple[Any, Any, Any]:
    """How far red, green and blue are above the least colour, 1 for the greatest."""
    at = hue * 6
    return _limited(abs(at - 3) - 1), _limited(2 - abs(at - 2)), _limited(2 - abs(at - 4))


def _to_hsv(begin: int, end: int, out: Array, x: Array, by: Array) -> None:
    """A turn is a pixel; nothing is read of `by`."""
    for p in range(begin, end):
        hue, value, spread = _hue(x[3 * p], x[3 * p + 1], x[3 * p + 2])
        out[3 * p] = hue
        out[3 * p + 1] = _saturation(value, spread)
        out[3 * p + 2] = value


def _from_hsv(begin: int, end: int, out: Array, x: Array, by: Array) -> None:
    for p in range(begin, end):
        saturation, value = x[3 * p + 1], x[3 * p + 2]
        red, green, blue = _sectors(x[3 * p])
        out[3 * p] = (1 - saturation + saturation * red) * value
        out[3 * p + 1] = (1 - saturation + saturation * green) * value
        out[3 * p + 2] = (1 - saturation + saturation * blue) * value


def _turned(begin: int, end: int, out: Array, x: Array, by: Array) -> None:
    for p in range(begin, end):
        hue, value, spread = _hue(x[3 * p], x[3 * p + 1], x[3 * p + 2])
        hue = hue + by[0]
        red, green, blue = _sectors(hue - lower(hue))
        out[3 * p] = value - spread + spread * red
        out[3 * p + 1] = value - spread + spread * green
        out[3 * p + 2] = value - spread + spread * blue


def _saturated(begin: int, end: int, out: Array, x: Array, by: Array) -> None:
    for p in range(begin, end):
        hue, value, spread = _hue(x[3 * p], x[3 * p + 1], x[3 * p + 2])
        saturation = _limited(_saturation(value, spread) * by[0])
        red, green, blue = _sectors(hue)
        out[3 * p] = (1 - saturation + saturation * red) * value
        out[3 * p + 1] = (1 - saturation + saturation * green) * value
        out[3 * p + 2] = (1 - saturation + saturation * blue) * value


def _contrasted(
    begin: int, end: int, out: Array, x: Array, by: Array, pixels: int, channels: int
) -> None:
    """A turn is a channel of an image."""
    for n in range(begin, end):
        first = n // channels * pixels * channels + n % channels
        even, odd = double(0), double(0)
        for p in range(pixels // 2):
            even += x[first + 2 * p * channels]
            odd += x[first + (2 * p + 1) * channels]
        if pixels % 2 > 0:
            even += x[first + (pixels - 1) * channels]
        mean = single((even + odd) / pixels)
        for p in range(pixels):
            out[first + p * channels] = (x[first + p * channels] - mean) * by[0] + mean


def _binder(loop: Looped) -> Callable[[NodeSig], Callable[..., Array]]:
    def bind(sig: NodeSig) -> Callable[..., Array]:
        plain: Callable[..., Array] = portable_kernel(sig)

        def run(images: Array, *by: Any) -> Array:
            scalar = np.shape(by[0]) == () if by else True
            if scalar and images.ndim >= (3 if by else 1) and images.shape[-1] == 3 and images.size:
                out = np.empty(images.shape, images.dtype)
                given = np.array(by or (0,), images.dtype)
                if loop(images.size // 3, _COST * images.size, out, images, given):
                    return out
            return plain(images, *by)

        return run

    return bind


table.binder("RGBToHSV", T=_FLOATS)(_binder(Looped(_to_hsv)))
table.binder("HSVToRGB", T=_FLOATS)(_binder(Looped(_from_hsv)))
table.binder("AdjustHue", T=_FLOATS, host_inputs=("delta",))(_binder(Looped(_turned)))
table.binder("AdjustSaturation", T=_FLOATS, host_inputs=("scale",))(_binder(Looped(_saturated)))


_CONTRAST: Final = Looped(_contrasted, fixed=("channels",))


@table.binder("AdjustContrastv2", T={dtypes.float32}, host_inputs=("contrast_factor",))
def adjust_contrast(sig: NodeSig) -> Callable[..., Array]:
    """Distances from the mean of each channel of each image, times a factor."""
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(images: Array, factor: Any) -> Array:
        if images.ndim >= 3 and images.size and np.shape(factor) == ():
            *batch, height, width, channels = images.shape
            turns, out = math.prod(batch) * channels, np.empty(images.shape, images.dtype)
            given = np.array([factor], images.dtype)
            sizes = height * width, channels
            if _CONTRAST(turns, 2 * images.size, out, images, given, *sizes):
                return out
        return plain(images, factor)

    return run
