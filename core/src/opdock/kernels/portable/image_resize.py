"""Portable kernels that resize images: weighted sums of lines along two axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.kernels import resampling
from opdock.kernels.array_api import dims, dtype_of, ints, invalid, zeros
from opdock.kernels.portable import portable
from opdock.kernels.portable.array import check_vector_of
from opdock.kernels.resampling import Lines, resampled
from opdock.kernels.select.signature import NodeSig

_MAX: Final = (1 << 31) - 1
_FLOAT: Final = "ResizeBilinear", "ResizeBicubic", "ResizeArea"
Finder = Callable[[int, int], Lines]
"""The lines of an axis, from its old length and its new one."""


def _finder(sig: NodeSig) -> Finder:
    """How a node finds the lines of an axis.

    Raises:
        InvalidArgumentError: the attributes contradict one another.
    """
    align, half = sig.attrs["align_corners"], sig.attrs.get("half_pixel_centers", False)
    if align and half:
        raise invalid("If half_pixel_centers is True, align_corners must be False.")
    if sig.op == "ResizeArea":
        return lambda old, new: resampling.area(old, new, align)
    name = sig.op.removeprefix("Resize").removesuffix("Grad")
    find = {
        "Bilinear": resampling.bilinear,
        "Bicubic": resampling.bicubic,
        "NearestNeighbor": resampling.nearest,
    }[name]
    return lambda old, new: find(old, new, align, half)


# ---------------------------------------------------------------- checks
def _check_rank(x: Any, name: str) -> None:
    if len(x.shape) != 4:
        raise invalid(f"{name} must be 4-dimensional{dims(x.shape)}")


def _wanted(size: Any, name: str = "shape_t") -> tuple[int, int]:
    """Two numbers; InvalidArgumentError when they are more or less."""
    check_vector_of(name, size, 2)
    height, width = ints(size)
    return height, width


def _check_images(images: Any, height: int, width: int) -> None:
    """Raises InvalidArgumentError unless images can have a new size."""
    _, rows, columns, channels = images.shape
    if rows > _MAX or columns > _MAX:
        raise invalid("input sizes must be between 0 and max int32")
    if height <= 0 or width <= 0:
        raise invalid("output dimensions must be positive")
    if channels <= 0:
        raise invalid("image must have at least one channel")
    if rows <= 0 or columns <= 0:
        raise invalid("input image must be of non-zero size")


# ---------------------------------------------------------------- resizes
def computed_in(xp: Any, x: Any, dtype: DType) -> Any:
    """An image in the type of its sums: float32, or float64 for an image that stays it."""
    return xp.astype(x, dtype_of(xp, dtype), copy=False)


@portable(*_FLOAT, host_inputs=("size",), computes_in=dtypes.float32)
def resize(xp: Any, sig: NodeSig) -> Any:
    """Images of another size, in single precision whatever they were."""
    columns_first = sig.op == "ResizeBilinear"

    def run(images: Any, size: Any) -> Any:
        find = _finder(sig)
        _check_rank(images, "input")
        height, width = _wanted(size)
        _check_images(images, height, width)
        _, rows, columns, _ = images.shape
        steps = [(1, find(rows, height)), (2, find(columns, width))]
        return _through(xp, images, steps, columns_first)

    return run


def _through(xp: Any, images: Any, steps: list[tuple[int, Lines]], columns_first: bool) -> Any:
    """Images through both steps, in float32; the order decides how sums are rounded."""
    own = getattr(xp, "resampled", None)
    ordered = steps[::-1] if columns_first else steps
    if own is not None and (found := own(images, ordered)) is not None:
        return found
    return _all_resampled(xp, xp.astype(images, xp.float32, copy=False), ordered)


@portable("ResizeNearestNeighbor", host_inputs=("size",))
def resize_nearest_neighbor(xp: Any, sig: NodeSig) -> Any:
    """Images of another size, of pixels as they were."""

    def run(images: Any, size: Any) -> Any:
        find = _finder(sig)
        _check_rank(images, "input")
        height, width = _wanted(size)
        _check_images(images, height, width)
        if images.shape[1] >= 1 << 24 or images.shape[2] >= 1 << 24:
            raise invalid("nearest neighbor requires max height & width of 2^24")
        out = resampled(xp, images, 1, find(images.shape[1], height))
        return resampled(xp, out, 2, find(images.shape[2], width))

    return run


# ---------------------------------------------------------------- gradients
def _back(xp: Any, grads: Any, rows: int, columns: int, find: Finder) -> Any:
    """The sum of what arrives at each old pixel."""
    _, height, width, _ = grads.shape
    steps = [(1, find(rows, height).turned(rows)), (2, find(columns, width).turned(columns))]
    return _all_resampled(xp, grads, steps)


def _all_resampled(xp: Any, x: Any, steps: list[tuple[int, Lines]]) -> Any:
    """Through one step after the other, in the type that it has."""
    own = getattr(xp, "resampled", None) if x.dtype == xp.float32 else None
    if own is not None and (found := own(x, steps)) is not None:
        return found
    for axis, lines in steps:
        x = resampled(xp, x, axis, lines)
    return x


@portable("ResizeBilinearGrad", "ResizeBicubicGrad", computes_in=dtypes.float32)
def resize_grad(xp: Any, sig: NodeSig) -> Any:
    """The gradient of interpolation, by the shape of the images that were resized."""
    dtype = sig.out_dtypes[0]

    def run(grads: Any, original: Any) -> Any:
        find = _finder(sig)
        _check_rank(grads, "input_grad")
        _check_rank(original, "original_image")
        rows, columns = original.shape[1:3]
        if rows > _MAX or columns > _MAX:
            raise invalid("original sizes must be between 0 and max int32")
        shape = (grads.shape[0], rows, columns, grads.shape[3])
        if math.prod(shape) == 0 or math.prod(grads.shape) == 0:
            return zeros(xp, shape, original, dtype)
        return computed_in(xp, _back(xp, grads, rows, columns, find), dtype)

    return run


@portable("ResizeNearestNeighborGrad", host_inputs=("size",))
def resize_nearest_neighbor_grad(xp: Any, sig: NodeSig) -> Any:
    """The gradient of taking the nearest pixel."""
    dtype = sig.out_dtypes[0].base_dtype
    wide = dtypes.float32 if dtype is dtypes.float16 else dtype

    def run(grads: Any, size: Any) -> Any:
        find = _finder(sig)
        _check_rank(grads, "input")
        rows, columns = _wanted(size)
        if rows <= 0 or columns <= 0:
            raise invalid("shape_t's elements must be positive")
        shape = (grads.shape[0], rows, columns, grads.shape[3])
        if math.prod(grads.shape) == 0:
            return zeros(xp, shape, grads, dtype)
        out = _back(xp, computed_in(xp, grads, wide), rows, columns, find)
        return computed_in(xp, out, dtype)

    return run


# ---------------------------------------------------------------- scale and translation
def _sampler(sig: NodeSig) -> tuple[str, bool]:
    """The name of the sampling kernel; InvalidArgumentError when there is none of that name."""
    given = sig.attrs["kernel_type"]
    name = given.decode() if isinstance(given, bytes) else str(given)
    if name.lower() not in resampling.SAMPLING:
        raise invalid(f"Unrecognized kernel type: {name}")
    return name.lower(), sig.attrs["antialias"]


def _pair(value: Any) -> tuple[float, float]:
    """A scale or a translation; InvalidArgumentError when it has not two elements."""
    check_vector_of("t", value, 2)
    row, column = (float(v) for v in np.asarray(value))
    return row, column


def _span_finders(sig: NodeSig, scale: Any, translation: Any) -> tuple[Finder, Finder]:
    """How the lines of rows and those of columns are found."""
    kernel, antialias = _sampler(sig)
    scales = _pair(scale)
    if not (scales[0] > 0 and scales[1] > 0):
        raise invalid("Scale must be greater than zero.")
    rows, columns = (
        functools.partial(_span, scale=s, translation=t, kernel=kernel, antialias=antialias)
        for s, t in zip(scales, _pair(translation), strict=True)
    )
    return rows, columns


def _span(
    old: int, new: int, scale: float, translation: float, kernel: str, antialias: bool
) -> Lines:
    return resampling.spans(old, new, scale, translation, kernel, antialias)


@portable(
    "ScaleAndTranslate", host_inputs=("size", "scale", "translation"), computes_in=dtypes.float32
)
def scale_and_translate(xp: Any, sig: NodeSig) -> Any:
    """Images seen through a scale and a translation, under a sampling kernel."""

    def run(images: Any, size: Any, scale: Any, translation: Any) -> Any:
        _check_rank(images, "input")
        height, width = _wanted(size, "output_shape_t")
        _check_images(images, height, width)
        find_rows, find_columns = _span_finders(sig, scale, translation)
        _, rows, columns, _ = images.shape
        steps = [(1, find_rows(rows, height)), (2, find_columns(columns, width))]
        return _through(xp, images, steps, columns_first=False)

    return run


@portable("ScaleAndTranslateGrad", host_inputs=("scale", "translation"))
def scale_and_translate_grad(xp: Any, sig: NodeSig) -> Any:
    """The gradient of `scale_and_translate`."""
    dtype = sig.out_dtypes[0]

    def run(grads: Any, original: Any, scale: Any, translation: Any) -> Any:
        _check_rank(grads, "input_grad")
        _check_rank(original, "original_image")
        find_rows, find_columns = _span_finders(sig, scale, translation)
        _, height, width, _ = grads.shape
        rows, columns = original.shape[1:3]
        shape = (grads.shape[0], rows, columns, grads.shape[3])
        if math.prod(shape) == 0 or math.prod(grads.shape) == 0:
            return zeros(xp, shape, grads, dtype)
        steps = [
            (1, find_rows(rows, height).turned(rows)),
            (2, find_columns(columns, width).turned(columns)),
        ]
        return _all_resampled(xp, grads, steps)

    return run
