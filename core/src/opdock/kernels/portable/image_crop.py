"""Portable kernels of crops, read through bilinear or nearest sampling, and of glimpses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.kernels.array_api import (
    device_ints,
    dims,
    dtype_of,
    fails,
    index_type,
    ints,
    invalid,
    zeros,
)
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import sum_at
from opdock.kernels.select.signature import NodeSig

_IN: Final = (dtypes.float32, dtypes.int64)


# ---------------------------------------------------------------- checks
def _check_boxes(boxes: Any, which: Any) -> None:
    """Raises InvalidArgumentError unless there is an index for each box."""
    if math.prod(boxes.shape) == 0 and math.prod(which.shape) == 0:
        return
    if len(boxes.shape) != 2:
        raise invalid(f"boxes must be 2-D{dims(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise invalid("boxes must have 4 columns")
    if len(which.shape) != 1:
        raise invalid(f"box_index must be 1-D{dims(which.shape)}")
    if which.shape[0] != boxes.shape[0]:
        raise invalid("box_index has incompatible shape")


def _check_image(image: Any) -> None:
    if len(image.shape) != 4:
        raise invalid(f"input image must be 4-D{dims(image.shape)}")
    if image.shape[1] <= 0 or image.shape[2] <= 0:
        raise invalid("image dimensions must be positive")


def _check_grads(grads: Any, boxes: Any, which: Any) -> None:
    """Raises InvalidArgumentError unless there is a crop for each box."""
    if len(grads.shape) != 4:
        raise invalid(f"grads image must be 4-D{dims(grads.shape)}")
    if grads.shape[1] <= 0 or grads.shape[2] <= 0:
        raise invalid("grads dimensions must be positive")
    _check_boxes(boxes, which)
    if grads.shape[0] != boxes.shape[0]:
        raise invalid("boxes and grads have incompatible shape")


def _check_indices(xp: Any, which: Any, batch: int) -> None:
    if math.prod(which.shape) and fails(xp, xp.any((which < 0) | (which >= batch))):
        raise errors.OutOfRangeError(None, None, "box_index has values outside [0, batch_size)")


# ---------------------------------------------------------------- where samples lie
@dataclass(frozen=True)
class _Axis:
    """Where the samples of boxes lie along an axis, each an array [boxes, samples].

    Attributes:
        inside: whether in the image; all else is of a place in it where they are not.
        low, high: the pixels around a sample.
        part: how far from the lower to the higher.
        near: the nearest pixel.
    """

    inside: Any
    low: Any
    high: Any
    part: Any
    near: Any


def _axis(xp: Any, start: Any, end: Any, length: int, samples: int) -> _Axis:
    """The samples of boxes from `start` to `end`, of which 1 is the last of `length` pixels."""
    start, end = xp.expand_dims(start, axis=1), xp.expand_dims(end, axis=1)
    if samples > 1:
        steps = xp.astype(device_ints(xp, np.arange(samples), start), xp.float32)
        at = start * (length - 1) + steps * ((end - start) * (length - 1) / (samples - 1))
    else:
        at = (start + end) * 0.5 * (length - 1)
    inside = (at >= 0) & (at <= length - 1)
    at = xp.where(inside, at, xp.zeros_like(at))
    floor, near = xp.floor(at), xp.floor(at + 0.5)
    low, high, near = (
        xp.astype(v, index_type(xp)) for v in (floor, xp.ceil(at), xp.clip(near, 0.0, length - 1.0))
    )
    return _Axis(inside, low, high, at - floor, near)


def _axes(
    xp: Any, boxes: Any, image: tuple[int, ...], crop: tuple[int, ...]
) -> tuple[_Axis, _Axis]:
    """The samples of boxes along rows and columns; shapes are heights and widths."""
    return (
        _axis(xp, boxes[:, 0], boxes[:, 2], image[0], crop[0]),
        _axis(xp, boxes[:, 1], boxes[:, 3], image[1], crop[1]),
    )


def _places(xp: Any, which: Any, y: Any, x: Any, height: int, width: int) -> Any:
    """The flat numbers of pixels, [boxes, rows, columns]."""
    image = xp.reshape(xp.astype(which, index_type(xp)), (-1, 1, 1))
    return (image * height + xp.expand_dims(y, axis=2)) * width + xp.expand_dims(x, axis=1)


def _part_of(xp: Any, y: _Axis, x: _Axis) -> tuple[Any, Any, Any]:
    """(whether inside, part along y, part along x), which broadcast over crops."""
    inside = xp.expand_dims(y.inside, axis=2) & xp.expand_dims(x.inside, axis=1)
    return (
        xp.expand_dims(inside, axis=3),
        xp.reshape(y.part, (*y.part.shape, 1, 1)),
        xp.reshape(x.part, (x.part.shape[0], 1, x.part.shape[1], 1)),
    )


class _Pixels:
    """Images as rows of pixels, read at four corners in single precision."""

    def __init__(self, xp: Any, image: Any, which: Any) -> None:
        self.xp, self.which = xp, which
        _, self.height, self.width, self.depth = image.shape
        self.rows = xp.reshape(image, (-1, self.depth))

    def at(self, y: Any, x: Any) -> Any:
        """The pixels at [boxes, rows] and [boxes, columns]."""
        xp = self.xp
        places = _places(xp, self.which, y, x, self.height, self.width)
        found = xp.take(self.rows, xp.reshape(places, (-1,)), axis=0)
        return xp.astype(xp.reshape(found, (*places.shape, self.depth)), xp.float32)

    def corners(self, y: _Axis, x: _Axis) -> list[Any]:
        """Those above left, above right, below left and below right."""
        return [self.at(row, column) for row in (y.low, y.high) for column in (x.low, x.high)]


# ---------------------------------------------------------------- crops
@portable("CropAndResize", host_inputs=("crop_size",), computes_in=_IN)
def crop_and_resize(xp: Any, sig: NodeSig) -> Any:
    """Boxes of images at one size."""
    outside, nearest = float(sig.attrs["extrapolation_value"]), sig.attrs["method"] == "nearest"

    def run(image: Any, boxes: Any, which: Any, crop_size: Any) -> Any:
        _check_image(image)
        _check_boxes(boxes, which)
        if np.ndim(crop_size) != 1:
            raise invalid(f"crop_size must be 1-D{dims(np.shape(crop_size))}")
        if np.size(crop_size) != 2:
            raise invalid(f"crop_size must have two elements{dims(np.shape(crop_size))}")
        rows, columns = ints(crop_size)
        if rows <= 0 or columns <= 0:
            raise invalid("crop dimensions must be positive")
        shape = (boxes.shape[0], rows, columns, image.shape[3])
        _check_indices(xp, which, image.shape[0])
        if math.prod(shape) == 0:
            return zeros(xp, shape, boxes, dtypes.float32)
        y, x = _axes(xp, boxes, image.shape[1:3], (rows, columns))
        inside, down, right = _part_of(xp, y, x)
        pixels = _Pixels(xp, image, which)
        if nearest:
            found = pixels.at(y.near, x.near)
        else:
            above_left, above_right, below_left, below_right = pixels.corners(y, x)
            above = above_left + (above_right - above_left) * right
            below = below_left + (below_right - below_left) * right
            found = above + (below - above) * down
        return xp.where(inside, found, xp.full_like(found, outside))

    return run


# ---------------------------------------------------------------- gradients
@portable("CropAndResizeGradImage", host_inputs=("image_size",), computes_in=_IN)
def crop_and_resize_grad_image(xp: Any, sig: NodeSig) -> Any:
    """Sums what crops got of each pixel."""
    nearest, dtype = sig.attrs["method"] == "nearest", sig.out_dtypes[0]

    def run(grads: Any, boxes: Any, which: Any, image_size: Any) -> Any:
        _check_grads(grads, boxes, which)
        if np.ndim(image_size) != 1:
            raise invalid(f"image_size must be 1-D{dims(np.shape(image_size))}")
        if np.size(image_size) != 4:
            raise invalid(f"image_size must have 4 elements{dims(np.shape(image_size))}")
        batch, height, width, depth = shape = tuple(ints(image_size))
        if height <= 0 or width <= 0:
            raise invalid("image dimensions must be positive")
        if grads.shape[3] != depth:
            raise invalid("image_size and grads are incompatible")
        _check_indices(xp, which, batch)
        if math.prod(grads.shape) == 0 or math.prod(shape) == 0:
            device = getattr(grads, "device", None)
            return xp.zeros(shape, dtype=dtype_of(xp, dtype), device=device)
        y, x = _axes(xp, boxes, (height, width), grads.shape[1:3])
        inside, down, right = _part_of(xp, y, x)
        grads = xp.where(inside, grads, xp.zeros_like(grads))
        if nearest:
            parts = [(y.near, x.near, grads)]
        else:
            above, below = grads * (1 - down), grads * down
            parts = [
                (y.low, x.low, above * (1 - right)),
                (y.low, x.high, above * right),
                (y.high, x.low, below * (1 - right)),
                (y.high, x.high, below * right),
            ]
        places = [_places(xp, which, row, column, height, width) for row, column, _ in parts]
        ids = xp.concat([xp.reshape(p, (-1,)) for p in places])
        rows = xp.concat([xp.reshape(part, (-1, depth)) for _, _, part in parts])
        total = sum_at(xp, rows, ids, batch * height * width)
        return xp.astype(xp.reshape(total, shape), dtype_of(xp, dtype), copy=False)

    return run


@portable("CropAndResizeGradBoxes", computes_in=_IN)
def crop_and_resize_grad_boxes(xp: Any, sig: NodeSig) -> Any:
    """How crops change with the edges of their boxes."""

    def run(grads: Any, image: Any, boxes: Any, which: Any) -> Any:
        _check_grads(grads, boxes, which)
        _check_image(image)
        if image.shape[3] != grads.shape[3]:
            raise invalid("image, grads depth differ")
        _check_indices(xp, which, image.shape[0])
        if math.prod(grads.shape) == 0:
            return zeros(xp, (grads.shape[0], 4), boxes, dtypes.float32)
        y, x = _axes(xp, boxes, image.shape[1:3], grads.shape[1:3])
        inside, down, right = _part_of(xp, y, x)
        corners = _Pixels(xp, image, which).corners(y, x)
        above_left, above_right, below_left, below_right = corners
        grads = xp.where(inside, grads, xp.zeros_like(grads))
        along_y = (1 - right) * (below_left - above_left) + right * (below_right - above_right)
        along_x = (1 - down) * (above_right - above_left) + down * (below_right - below_left)
        y1, y2 = _edges(xp, xp.sum(along_y * grads, axis=(2, 3)), image.shape[1])
        x1, x2 = _edges(xp, xp.sum(along_x * grads, axis=(1, 3)), image.shape[2])
        return xp.stack([y1, x1, y2, x2], axis=1)

    return run


def _edges(xp: Any, moved: Any, length: int) -> tuple[Any, Any]:
    """The gradient of both edges of boxes from that of the samples between them."""
    samples = moved.shape[1]
    if samples > 1:
        whole = np.arange(samples, dtype=np.float32) * np.float32((length - 1) / (samples - 1))
        low, high = (length - 1) - whole, whole
    else:
        low = high = np.full(1, 0.5 * (length - 1), np.float32)
    device = getattr(moved, "device", None)
    edges = [
        xp.sum(moved * xp.asarray(weights, dtype=moved.dtype, device=device), axis=1)
        for weights in (low, high)
    ]
    return edges[0], edges[1]


# ---------------------------------------------------------------- glimpses
_NOISES: Final = ("uniform", "gaussian", "zero")
_FAR: Final = 2.0**30


def glimpse_noise(sig: NodeSig) -> str:
    """What fills the margins of a node's glimpses: "uniform", "gaussian" or "zero".

    Raises:
        InvalidArgumentError: the attributes contradict one another.
    """
    given = sig.attrs["noise"]
    noise = given.decode() if isinstance(given, bytes) else str(given)
    if sig.attrs["uniform_noise"] and noise not in ("", "uniform"):
        raise invalid("The uniform_noise and noise could not be specified at the same time")
    if not noise:
        return "uniform" if sig.attrs["uniform_noise"] else "gaussian"
    if noise not in _NOISES:
        raise invalid(f"The noise could only be uniform, gaussian, or zero, got{noise}")
    return noise


def check_glimpses(images: Any, size: Any, offsets: Any) -> tuple[int, int]:
    """The height and width of glimpses.

    Raises:
        InvalidArgumentError: they are none, or there is no place for each image.
    """
    if len(images.shape) != 4:
        raise invalid(
            f"input must be 4-dimensional (batch_size, height, width, depth){dims(images.shape)}"
        )
    if np.shape(size) != (2,):
        raise invalid(f"input must be a vector of size 2 (height, width){dims(np.shape(size))}")
    height, width = ints(size)
    if min(height, width) < 0:
        raise invalid(f"Dimensions must be >= 0, got {[height, width]}")
    if len(offsets.shape) != 2:
        raise invalid(f"input must be a matrix{dims(offsets.shape)}")
    if offsets.shape[0] != images.shape[0]:
        raise invalid(f"first dimension should be batch{dims(offsets.shape)}")
    if offsets.shape[1] != 2:
        raise invalid(f"second dimension should be of size 2 (y,x){dims(offsets.shape)}")
    return height, width


def _still(sig: NodeSig) -> bool | str:
    """Whether margins are zeros: noise has no seed, so whoever draws it may as well fill it in."""
    noisy = sig.attrs["uniform_noise"] or sig.attrs["noise"] not in (b"zero", "zero")
    return not noisy or "margins of noise are drawn on the host"


@portable("ExtractGlimpse", when=_still, host_inputs=("size",))
def extract_glimpse(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Windows of each image, with zeros outside of it."""
    centered, normalized = sig.attrs["centered"], sig.attrs["normalized"]

    def places(offset: Any, length: int, size: int) -> tuple[Any, Any]:
        """Where the pixels of windows are along an axis, [batch, size], and which are inside."""
        at = offset * float(length if normalized else 1)
        if centered:
            at = at / 2 + length / 2
        at = at - size / 2
        at = xp.clip(xp.where(xp.isnan(at), xp.zeros_like(at), at), -_FAR, _FAR)
        # What is between pixels is cut off, towards zero.
        first = xp.expand_dims(xp.astype(at, index_type(xp)), axis=1)
        place = first + device_ints(xp, np.arange(size), offset)
        return xp.clip(place, 0, length - 1), (place >= 0) & (place < length)

    def run(images: Any, size: Any, offsets: Any) -> Any:
        height, width = check_glimpses(images, size, offsets)
        batch, rows, columns, depth = images.shape
        shape = (batch, height, width, depth)
        if math.prod(shape) == 0 or math.prod(images.shape) == 0:
            return xp.zeros(shape, dtype=xp.float32, device=getattr(images, "device", None))
        y, within_y = places(offsets[:, 0], rows, height)
        x, within_x = places(offsets[:, 1], columns, width)
        image = xp.reshape(device_ints(xp, np.arange(batch) * rows, images), (batch, 1))
        pixel = xp.expand_dims((image + y) * columns, axis=2) + xp.expand_dims(x, axis=1)
        flat = xp.reshape(images, (-1, depth))
        found = xp.reshape(xp.take(flat, xp.reshape(pixel, (-1,)), axis=0), shape)
        inside = xp.expand_dims(within_y, axis=2) & xp.expand_dims(within_x, axis=1)
        return xp.where(xp.expand_dims(inside, axis=3), found, xp.zeros_like(found))

    return run
