"""Portable kernels of colours: contrast, hue, saturation, and HSV."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.dtypes import FLOATS
from opdock.kernels.array_api import dims, dtype_of, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import wide
from opdock.kernels.select.signature import NodeSig


def _scalar(value: Any, name: str) -> float:
    if np.ndim(value) != 0:
        raise invalid(f"{name} must be scalar: {dims(np.shape(value))}")
    return float(value)


def _check_image(images: Any, channels: bool = True) -> None:
    """Raises InvalidArgumentError unless there are images, with three channels if they have to."""
    if len(images.shape) < 3:
        raise invalid(f"input must be at least 3-D, got shape{dims(images.shape)}")
    if channels and images.shape[-1] != 3:
        raise invalid(f"input must have 3 channels but instead has {images.shape[-1]} channels.")


def _check_colors(images: Any) -> None:
    """Raises an error unless the last dimension has three entries."""
    if len(images.shape) < 1:
        raise invalid(f"input must be at least 1D{dims(images.shape)}")
    if images.shape[-1] != 3:
        raise errors.FailedPreconditionError(
            None,
            None,
            f"input must have 3 channels but input only has {images.shape[-1]} channels.",
        )


# ---------------------------------------------------------------- contrast
@portable("AdjustContrastv2", T=FLOATS, host_inputs=("contrast_factor",))
def adjust_contrast(xp: Any, sig: NodeSig) -> Any:
    """Distances from the mean of each channel of each image, times a factor."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(images: Any, factor: Any) -> Any:
        _check_image(images, channels=False)
        by = _scalar(factor, "contrast_factor")
        if math.prod(images.shape) == 0:
            return xp.asarray(images, copy=True)
        x = wide(xp, images, dtype)
        mean = xp.mean(x, axis=(-3, -2), keepdims=True)
        return xp.astype((x - mean) * by + mean, images.dtype, copy=False)

    return run


# ---------------------------------------------------------------- luma and chroma
# Red, green and blue as luma and two parts of chroma, and back, with TF's digits.
_YIQ: Final = np.array(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]], np.float32
)
_RGB: Final = np.array(
    [[1, 0.95617069, 0.62143257], [1, -0.2726886, -0.64681324], [1, -1.103744, 1.70062309]],
    np.float32,
)


@portable("AdjustHsvInYiq", T=FLOATS, host_inputs=("delta_h", "scale_s", "scale_v"))
def adjust_hsv_in_yiq(xp: Any, sig: NodeSig) -> Any:
    """Chroma turned and made larger, and all made brighter: one matrix."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(images: Any, delta_h: Any, scale_s: Any, scale_v: Any) -> Any:
        _check_image(images)
        turn, saturation, value = (
            _scalar(v, name)
            for v, name in ((delta_h, "delta_h"), (scale_s, "scale_s"), (scale_v, "scale_v"))
        )
        along, across = (value * saturation * part for part in (math.cos(turn), math.sin(turn)))
        change = np.array([[value, 0, 0], [0, along, -across], [0, across, along]], np.float32)
        x = wide(xp, images, dtype)
        matrix = xp.asarray(
            (_RGB @ change @ _YIQ).T, dtype=x.dtype, device=getattr(images, "device", None)
        )
        return xp.astype(xp.matmul(x, matrix), dtype_of(xp, dtype), copy=False)

    return run


# ---------------------------------------------------------------- hue, saturation, value
def _hue(xp: Any, rgb: Any) -> tuple[Any, Any, Any]:
    """(hue in [0, 1), value, range) of the last dimension; grey has hue zero."""
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value = xp.maximum(xp.maximum(r, g), b)
    spread = value - xp.minimum(xp.minimum(r, g), b)
    colored = spread > 0
    unit = (1 / 6) / xp.where(colored, spread, xp.ones_like(spread))
    hue = xp.where(
        r == value,
        unit * (g - b),
        xp.where(g == value, unit * (b - r) + 2 / 6, unit * (r - g) + 4 / 6),
    )
    hue = xp.where(colored, hue, xp.zeros_like(hue))
    return xp.where(hue < 0, hue + 1, hue), value, spread


def _saturation(xp: Any, value: Any, spread: Any) -> Any:
    lit = value > 0
    return xp.where(lit, spread / xp.where(lit, value, xp.ones_like(value)), xp.zeros_like(value))


def _sectors(xp: Any, hue: Any) -> list[Any]:
    """How far red, green and blue are above the least colour, 1 for the greatest."""
    at = hue * 6
    above = (xp.abs(at - 3) - 1, 2 - xp.abs(at - 2), 2 - xp.abs(at - 4))
    return [xp.clip(part, 0.0, 1.0) for part in above]


def _from_hsv(xp: Any, hue: Any, saturation: Any, value: Any) -> Any:
    """Red, green and blue in a new last dimension."""
    base = 1 - saturation
    parts = _sectors(xp, hue)
    return xp.stack([(base + saturation * part) * value for part in parts], axis=-1)


@portable("RGBToHSV", T=FLOATS)
def rgb_to_hsv(xp: Any, sig: NodeSig) -> Any:
    """Hue, saturation and value."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(images: Any) -> Any:
        _check_colors(images)
        if math.prod(images.shape) == 0:
            return xp.asarray(images, copy=True)
        hue, value, spread = _hue(xp, wide(xp, images, dtype))
        out = xp.stack([hue, _saturation(xp, value, spread), value], axis=-1)
        return xp.astype(out, dtype_of(xp, dtype), copy=False)

    return run


@portable("HSVToRGB", T=FLOATS)
def hsv_to_rgb(xp: Any, sig: NodeSig) -> Any:
    """Red, green and blue."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(images: Any) -> Any:
        _check_colors(images)
        x = wide(xp, images, dtype)
        out = _from_hsv(xp, x[..., 0], x[..., 1], x[..., 2])
        return xp.astype(out, dtype_of(xp, dtype), copy=False)

    return run


@portable("AdjustHue", T=FLOATS, host_inputs=("delta",))
def adjust_hue(xp: Any, sig: NodeSig) -> Any:
    """Hues turned by a part of the circle."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(images: Any, delta: Any) -> Any:
        _check_image(images)
        by = _scalar(delta, "delta")
        if math.prod(images.shape) == 0:
            return xp.asarray(images, copy=True)
        hue, value, spread = _hue(xp, wide(xp, images, dtype))
        hue = hue + by
        hue = hue - xp.floor(hue)
        low = value - spread
        out = xp.stack([low + spread * part for part in _sectors(xp, hue)], axis=-1)
        return xp.astype(out, images.dtype, copy=False)

    return run


@portable("AdjustSaturation", T=FLOATS, host_inputs=("scale",))
def adjust_saturation(xp: Any, sig: NodeSig) -> Any:
    """Saturations times a factor, at most 1."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(images: Any, scale: Any) -> Any:
        _check_image(images)
        by = _scalar(scale, "scale")
        if math.prod(images.shape) == 0:
            return xp.asarray(images, copy=True)
        hue, value, spread = _hue(xp, wide(xp, images, dtype))
        saturation = xp.clip(_saturation(xp, value, spread) * by, 0.0, 1.0)
        out = _from_hsv(xp, hue, saturation, value)
        return xp.astype(out, images.dtype, copy=False)

    return run
