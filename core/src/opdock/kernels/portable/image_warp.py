"""Portable kernels of images read at other places, through the nearest pixel or the four around.

Outside an image all is zero, and so between its last pixels and the next there would be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import FLOATS
from opdock.kernels.array_api import (
    device_ints,
    dims,
    index_type,
    ints,
    invalid,
)
from opdock.kernels.portable import portable
from opdock.kernels.portable.array import check_vector_of
from opdock.kernels.portable.segment import sum_at, wide
from opdock.kernels.select.signature import NodeSig

_IN: Final = (dtypes.float32, dtypes.int64)


class _Pixels:
    """Images whose pixels are read at places that may be outside.

    Args:
        xp: the array namespace.
        images: an array [batch, height, width, channels].
    """

    def __init__(self, xp: Any, images: Any) -> None:
        self.xp = xp
        self.batch, self.height, self.width, self.channels = images.shape
        self.rows = xp.reshape(images, (-1, self.channels))

    def places(self, y: Any, x: Any) -> tuple[Any, Any]:
        """Whether places [batch, ...] are inside, and the numbers of the pixels if they are."""
        xp = self.xp
        inside = (y >= 0) & (y <= self.height - 1) & (x >= 0) & (x <= self.width - 1)
        row, column = (
            xp.astype(xp.where(inside, at, xp.zeros_like(at)), index_type(xp)) for at in (y, x)
        )
        image = device_ints(xp, np.arange(self.batch), self.rows)
        image = xp.reshape(image, (self.batch, *[1] * (len(y.shape) - 1)))
        return inside, (image * self.height + row) * self.width + column

    def at(self, y: Any, x: Any) -> Any:
        """The pixels at whole places: an array [batch, ..., channels]."""
        xp = self.xp
        inside, places = self.places(y, x)
        found = xp.take(self.rows, xp.reshape(places, (-1,)), axis=0)
        found = xp.reshape(found, (*places.shape, self.channels))
        return xp.where(xp.expand_dims(inside, axis=-1), found, xp.zeros_like(found))


def _around(xp: Any, y: Any, x: Any) -> Iterator[tuple[Any, Any, Any, Any, int, int]]:
    """The four whole places around others.

    Yields:
        A row and a column, how near it is along rows and along columns (1 if it is there), and in
        which direction it lies.
    """
    top, left = xp.floor(y), xp.floor(x)
    for row, down, south in ((top, top + 1 - y, -1), (top + 1, y - top, 1)):
        for column, right, east in ((left, left + 1 - x, -1), (left + 1, x - left, 1)):
            yield row, column, down, right, south, east


def _has_room(xp: Any, *arrays: Any) -> bool:
    return all(math.prod(a.shape) for a in arrays)


# ---------------------------------------------------------------- projective transforms
def _round(xp: Any, x: Any) -> Any:
    """To the nearest whole number, halves away from zero."""
    whole = xp.trunc(x)
    return xp.where(xp.abs(x - whole) >= 0.5, whole + xp.sign(x), whole)


def _sources(xp: Any, transforms: Any, height: int, width: int) -> tuple[Any, Any]:
    """Where in the input the pixels of outputs come from: y and x, [transforms, height, width]."""
    rows, columns = (
        xp.astype(device_ints(xp, np.arange(n), transforms), xp.float32) for n in (height, width)
    )
    y, x = xp.reshape(rows, (1, -1, 1)), xp.reshape(columns, (1, 1, -1))
    a = [xp.reshape(transforms[:, i], (-1, 1, 1)) for i in range(8)]
    depth = a[6] * x + a[7] * y + 1.0
    at_infinity = depth == 0
    depth = xp.where(at_infinity, xp.ones_like(depth), depth)
    outside = xp.full_like(depth, -2.0)
    found_x = (a[0] * x + a[1] * y + a[2]) / depth
    found_y = (a[3] * x + a[4] * y + a[5]) / depth
    return xp.where(at_infinity, outside, found_y), xp.where(at_infinity, outside, found_x)


@portable("ImageProjectiveTransform", computes_in=_IN)
@portable("ImageProjectiveTransformV2", host_inputs=("output_shape",), computes_in=_IN)
def image_projective_transform(xp: Any, sig: NodeSig) -> Any:
    """Each pixel of the output from where its transform says, in single precision."""
    nearest = sig.attrs["interpolation"] == "NEAREST"

    def run(images: Any, transforms: Any, output_shape: Any = None) -> Any:
        if len(images.shape) != 4:
            raise invalid("Input images must have rank 4")
        batch, *size, channels = images.shape
        if (
            len(transforms.shape) != 2
            or transforms.shape[0] not in (1, batch)
            or (transforms.shape[1] != 8)
        ):
            raise invalid("Input transform should be num_images x 8 or 1 x 8")
        if output_shape is not None:
            size = _size(output_shape)
        if not _has_room(xp, images):
            device = getattr(images, "device", None)
            return xp.zeros((batch, *size, channels), dtype=images.dtype, device=device)
        y, x = (xp.broadcast_to(at, (batch, *size)) for at in _sources(xp, transforms, *size))
        pixels = _Pixels(xp, images)
        if nearest:
            return pixels.at(_round(xp, y), _round(xp, x))
        total: Any = 0.0
        for row, column, down, right, _, _ in _around(xp, y, x):
            value = xp.astype(pixels.at(row, column), xp.float32)
            # A pixel that is infinitely far away has no weight, rather than none that is known.
            weight = xp.expand_dims(down * right, axis=-1)
            total = total + xp.where(value == 0, xp.zeros_like(value), value * weight)
        return xp.astype(total, images.dtype, copy=False)

    return run


def _size(output_shape: Any) -> list[int]:
    check_vector_of("output shape", output_shape, 2)
    size = ints(output_shape)
    if min(size) <= 0:
        raise invalid("output dimensions must be positive")
    return size


# ---------------------------------------------------------------- samples at points
def _check_sampled(data: Any, warp: Any) -> None:
    if len(data.shape) != 4:
        raise errors.UnimplementedError(
            None, None,
            "Only bilinear interpolation is currently supported. The input data shape must be "
            f"[batch_size, data_height, data_width, data_channels], but is: {dims(data.shape)}",
        )  # fmt: skip
    if len(warp.shape) < 2:
        raise invalid(f"warp should be at least a matrix, got shape {dims(warp.shape)}")
    if warp.shape[-1] != 2:
        raise errors.UnimplementedError(
            None, None,
            "Only bilinear interpolation is supported, warping coordinates must be 2D; warp shape "
            f"last entry should be 2, but shape vector is: {dims(warp.shape)}",
        )  # fmt: skip
    if data.shape[0] != warp.shape[0]:
        raise invalid(
            "Batch size of data and warp tensor must be the same, but input shapes are: "
            f"{dims(data.shape)}, {dims(warp.shape)}"
        )


def _points(xp: Any, pixels: _Pixels, warp: Any) -> tuple[Any, Any, Any]:
    """Which points are nearer than a pixel's width to the image; y and x, both [batch, points]."""
    warp = xp.reshape(warp, (pixels.batch, -1, 2))
    y, x = warp[..., 1], warp[..., 0]
    near = (y > -1) & (y < pixels.height) & (x > -1) & (x < pixels.width)
    zero = xp.zeros_like(y)
    return near, xp.where(near, y, zero), xp.where(near, x, zero)


@portable("Resampler", T=FLOATS)
def resampler(xp: Any, sig: NodeSig) -> Any:
    """Between four pixels."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(data: Any, warp: Any) -> Any:
        _check_sampled(data, warp)
        shape = (*warp.shape[:-1], data.shape[3])
        if not _has_room(xp, data, warp):
            return xp.zeros(shape, dtype=data.dtype, device=getattr(data, "device", None))
        pixels = _Pixels(xp, wide(xp, data, dtype))
        near, y, x = _points(xp, pixels, wide(xp, warp, dtype))
        total: Any = 0.0
        for row, column, down, right, _, _ in _around(xp, y, x):
            total = total + pixels.at(row, column) * xp.expand_dims(down * right, axis=-1)
        total = xp.where(xp.expand_dims(near, axis=-1), total, xp.zeros_like(total))
        return xp.reshape(xp.astype(total, data.dtype, copy=False), shape)

    return run


@portable("ResamplerGrad", T=FLOATS)
def resampler_grad(xp: Any, sig: NodeSig) -> Any:
    """What points give back to pixels, and how they change with their places."""
    dtype = sig.in_dtypes[0].base_dtype

    def run(data: Any, warp: Any, grad: Any) -> tuple[Any, Any]:
        _check_sampled(data, warp)
        wanted = (*warp.shape[:-1], data.shape[3])
        if tuple(grad.shape) != wanted:
            raise invalid(
                "grad_output shape is not consistent with data and warp shapes; it should be "
                f"{dims(wanted)} but is {dims(grad.shape)}"
            )
        if not _has_room(xp, data, warp):
            return xp.zeros_like(data), xp.zeros_like(warp)
        pixels = _Pixels(xp, wide(xp, data, dtype))
        near, y, x = _points(xp, pixels, wide(xp, warp, dtype))
        grad = xp.reshape(wide(xp, grad, dtype), (*y.shape, pixels.channels))
        grad = xp.where(xp.expand_dims(near, axis=-1), grad, xp.zeros_like(grad))
        on_y: Any = 0.0
        on_x: Any = 0.0
        rows, ids = [], []
        for row, column, down, right, south, east in _around(xp, y, x):
            met = xp.sum(pixels.at(row, column) * grad, axis=-1)
            on_y, on_x = on_y + south * right * met, on_x + east * down * met
            inside, places = pixels.places(row, column)
            part = grad * xp.expand_dims(xp.where(inside, down * right, xp.zeros_like(y)), axis=-1)
            rows.append(xp.reshape(part, (-1, pixels.channels)))
            ids.append(xp.reshape(places, (-1,)))
        count = pixels.rows.shape[0]
        on_data = sum_at(xp, xp.concat(rows), xp.concat(ids), count)
        on_warp = xp.stack([on_x, on_y], axis=-1)
        return (
            xp.reshape(xp.astype(on_data, data.dtype, copy=False), data.shape),
            xp.reshape(xp.astype(on_warp, warp.dtype, copy=False), warp.shape),
        )

    return run
