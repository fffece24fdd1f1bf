"""CPU kernels of crops and their gradients, and glimpses, whose margins are noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu.crops import BOXES, CROPS, IMAGE
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


def _filled(image: Array, shape: tuple[int, ...], noise: str, rng: Any) -> Array:
    """A glimpse of nothing but noise, with the values that the image has."""
    if noise == "zero" or image.size == 0:
        return np.zeros(shape, np.float32)
    if noise == "uniform":
        low, high = image.min(), image.max()
        even: Array = low + rng.random(shape, np.float32) * (high - low)
        return even.astype(np.float32)
    mean, deviation = image.mean(axis=(0, 1)), image.std(axis=(0, 1))
    values = mean + rng.standard_normal(shape, np.float32) * deviation
    kept: Array = np.clip(values, image.min(axis=(0, 1)), image.max(axis=(0, 1)))
    return kept.astype(np.float32)


def _overlap(start: int, size: int, length: int) -> tuple[slice, slice]:
    """Which part of a window of `size` from `start` on is which part of `length` pixels."""
    first, last = max(start, 0), min(start + size, length)
    last = max(first, last)
    return slice(first - start, last - start), slice(first, last)


@table.binder("ExtractGlimpse")
def extract_glimpse(sig: NodeSig) -> Callable[..., Array]:
    """Windows around a place in each image."""
    centered, normalized = sig.attrs["centered"], sig.attrs["normalized"]
    rng = np.random.default_rng()

    def start(offset: np.float32, length: int, size: int) -> int:
        """The first pixel of a window; what is between pixels is cut off, towards zero."""
        at = np.float32(offset) * (length if normalized else 1)
        if centered:
            at = at / 2 + np.float32(length / 2)
        at = np.nan_to_num(at - np.float32(size / 2))
        return int(np.clip(at, -(2**30), 2**30))

    def run(images: Array, size: Array, offsets: Array) -> Array:
        noise = checks.glimpse_noise(sig)
        height, width = checks.check_glimpses(images, size, offsets)
        batch, rows, columns, depth = images.shape
        out = np.empty((batch, height, width, depth), np.float32)
        for i, image in enumerate(images):
            up, left = (
                start(offsets[i, j], n, m)
                for j, (n, m) in enumerate(((rows, height), (columns, width)))
            )
            to_rows, from_rows = _overlap(up, height, rows)
            to_columns, from_columns = _overlap(left, width, columns)
            part = image[from_rows, from_columns]
            if part.shape[:2] != (height, width):
                out[i] = _filled(image, out.shape[1:], noise, rng)
            out[i, to_rows, to_columns] = part
        return out

    return run


# ---------------------------------------------------------------- crops and their gradients
_F32: Final = frozenset({dtypes.float32})
_PIXELS: Final = _F32 | {
    dtypes.uint8, dtypes.uint16, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
}  # fmt: skip


def _right(boxes: Array, which: Array, count: int, batch: int) -> bool:
    """Whether there are `count` boxes, each of an image of the batch."""
    found = boxes.shape == (count, 4) and which.shape == (count,) and count > 0
    return bool(found and 0 <= which.min() <= which.max() < batch)


def _fit(grads: Array, boxes: Array, which: Array, batch: int, depth: int) -> bool:
    """Whether there is something to do, and nothing wrong that the portable kernel would tell."""
    if grads.ndim != 4 or grads.size == 0 or grads.shape[3] != depth:
        return False
    return _right(boxes, which, len(grads), batch)


@table.binder("CropAndResize", host_inputs=("crop_size",))
def crop_and_resize(sig: NodeSig) -> Callable[..., Array]:
    """Boxes of images at one size."""
    plain: Callable[..., Array] = portable_kernel(sig)
    nearest, beyond = sig.attrs["method"] == "nearest", float(sig.attrs["extrapolation_value"])

    def run(image: Array, boxes: Array, which: Array, crop_size: Array) -> Array:
        size = checks.ints(crop_size) if np.shape(crop_size) == (2,) else (0, 0)
        if image.ndim == 4 and image.size and min(size) > 0:
            _, height, width, depth = image.shape
            if _right(boxes, which, len(boxes), len(image)):
                out = np.empty((len(boxes), *size, depth), np.float32)
                numbers = (*size, height, width, depth, int(nearest), beyond)
                if CROPS(len(boxes), 4 * out.size, out, image, boxes, which, *numbers):
                    return out
        return plain(image, boxes, which, crop_size)

    return run


@table.binder("CropAndResizeGradImage", T=_F32, host_inputs=("image_size",))
def crop_and_resize_grad_image(sig: NodeSig) -> Callable[..., Array]:
    """Sums what crops got of each pixel."""
    plain: Callable[..., Array] = portable_kernel(sig)
    nearest = sig.attrs["method"] == "nearest"

    def run(grads: Array, boxes: Array, which: Array, image_size: Array) -> Array:
        shape = tuple(checks.ints(image_size))
        if len(shape) == 4 and min(shape) > 0 and _fit(grads, boxes, which, shape[0], shape[3]):
            out = np.zeros(shape, np.float32)
            numbers = (*grads.shape[:3], *shape[1:], int(nearest))
            if IMAGE(shape[0], 8 * grads.size, out, grads, boxes, which, *numbers):
                return out
        return plain(grads, boxes, which, image_size)

    return run


@table.binder("CropAndResizeGradBoxes", T=_PIXELS)
def crop_and_resize_grad_boxes(sig: NodeSig) -> Callable[..., Array]:
    """How crops change with the edges of their boxes."""
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(grads: Array, image: Array, boxes: Array, which: Array) -> Array:
        if image.ndim == 4 and image.size and _fit(grads, boxes, which, len(image), image.shape[3]):
            out = np.empty((len(grads), 4), np.float32)
            numbers = (*grads.shape[1:3], *image.shape[1:])
            if BOXES(len(grads), 8 * grads.size, out, grads, image, boxes, which, *numbers):
                return out
        return plain(grads, image, boxes, which)

    return run
