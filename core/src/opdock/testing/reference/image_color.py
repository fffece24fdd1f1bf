"""Colours, a pixel at a time: `colorsys` of Python's library where it knows the way."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]
Color = tuple[float, float, float]


def _each(images: Array, function: Callable[..., Color]) -> Array:
    out = np.empty(images.shape, np.float64)
    for place in np.ndindex(*images.shape[:-1]):
        out[place] = function(*(float(v) for v in images[place]))
    return out


@reference("AdjustContrastv2")
def adjust_contrast(attrs: Attrs, images: Array, factor: Array) -> Array:
    """Distances from the mean of each channel, times the factor."""
    mean = images.mean(axis=(-3, -2), keepdims=True) if images.size else images
    return (images - mean) * factor + mean


@reference("RGBToHSV")
def rgb_to_hsv(attrs: Attrs, images: Array) -> Array:
    """Hue, saturation, value."""
    return _each(images, colorsys.rgb_to_hsv)


@reference("HSVToRGB")
def hsv_to_rgb(attrs: Attrs, images: Array) -> Array:
    """Red, green, blue."""
    return _each(images, colorsys.hsv_to_rgb)


@reference("AdjustHue")
def adjust_hue(attrs: Attrs, images: Array, delta: Array) -> Array:
    """Hues turned."""

    def turned(r: float, g: float, b: float) -> Color:
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        return colorsys.hsv_to_rgb((h + float(delta)) % 1.0, s, v)

    return _each(images, turned)


@reference("AdjustSaturation")
def adjust_saturation(attrs: Attrs, images: Array, scale: Array) -> Array:
    """Saturations times the factor, between 0 and 1."""

    def richer(r: float, g: float, b: float) -> Color:
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        return colorsys.hsv_to_rgb(h, min(max(s * float(scale), 0.0), 1.0), v)

    return _each(images, richer)


@reference("AdjustHsvInYiq")
def adjust_hsv_in_yiq(
    attrs: Attrs, images: Array, delta_h: Array, scale_s: Array, scale_v: Array
) -> Array:
    """Each colour as luma and chroma, changed there, and back."""
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    to_rgb = np.array(
        [[1, 0.95617069, 0.62143257], [1, -0.2726886, -0.64681324], [1, -1.103744, 1.70062309]]
    )
    out = np.empty(images.shape, np.float64)
    for place in np.ndindex(*images.shape[:-1]):
        luma, i, q = to_yiq @ images[place].astype(np.float64)
        chroma = (i + 1j * q) * np.exp(1j * float(delta_h)) * float(scale_s)
        out[place] = to_rgb @ (float(scale_v) * np.array([luma, chroma.real, chroma.imag]))
    return out
