"""The second derivative of batch normalization, as graph ops.

The training op's gradient is a function of (dy, x, scale): the batch statistics are functions of x
and are recomputed here, so the result does not depend on what a device keeps in its reserves.
"""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.support.nn_util import as_type, emit, is_zero
from opdock.windows import Format


class Channels:
    """Sums over everything but the channels of images, and what is made of them.

    With the channels last, vectors broadcast against images as they are. Else they stand as
    `spread` makes them, until `flat` makes a result of one.
    """

    def __init__(self, data_format: str) -> None:
        self._axes = [0, *Format(data_format, 4).space]
        self._first = data_format == "NCHW"

    def sum(self, images: Any) -> Any:
        """The sum of each channel."""
        return emit("Sum", images, self._axes, keep_dims=self._first)

    def mean(self, images: Any) -> Any:
        """The mean of each channel."""
        return emit("Mean", images, self._axes, keep_dims=self._first)

    def count(self, images: Any) -> Any:
        """How many values a channel has: a number if that is known."""
        shape = images.raw_shape
        dims: list[Any] = [None] if shape is None else [shape[a] for a in self._axes]
        if None not in dims:
            return float(math.prod(dims))
        sizes = emit("GatherV2", emit("Shape", images), self._axes, 0)
        return emit("Cast", emit("Prod", sizes, [0]), DstT=dtypes.float32)

    def spread(self, vector: Any) -> Any:
        """A vector as it broadcasts against images."""
        return emit("Reshape", vector, [1, -1, 1, 1]) if self._first else vector

    def flat(self, tensor: Any) -> Any:
        """What `spread` makes of a vector, as a vector."""
        return emit("Reshape", tensor, [-1]) if self._first else tensor


def batch_norm_grad_grad(op: Operation, g_x: Any, g_scale: Any, g_offset: Any) -> list[Any]:
    """Gradients of a training FusedBatchNormGrad node with respect to (dy, x, scale).

    Args:
        op: the FusedBatchNormGrad node.
        g_x: the gradient at `x_backprop`.
        g_scale: the gradient at `scale_backprop`.
        g_offset: the gradient at `offset_backprop`.
    """
    dy, x, scale = (
        as_type(op.inputs[0], dtypes.float32),
        as_type(op.inputs[1], dtypes.float32),
        op.inputs[2],
    )
    over = Channels(op.attrs["data_format"])
    centred = x - over.mean(x)
    inv = emit("Rsqrt", over.mean(emit("Square", centred)) + op.attrs["epsilon"])
    normal = centred * inv
    gamma = over.spread(scale)
    dy_mean, dy_normal = over.mean(dy), over.mean(dy * normal)
    # What the first derivative is for scale 1.
    unit = inv * (dy - dy_mean - normal * dy_normal)
    d_dy: Any = None
    d_x: Any = None
    d_scale = None
    if not is_zero(g_x):
        g = as_type(g_x, dtypes.float32)
        g_mean, g_normal = over.mean(g), over.mean(g * normal)
        d_dy = gamma * inv * (g - g_mean - normal * g_normal)
        bend = 3.0 * dy_normal * g_normal + dy_mean * g_mean - over.mean(dy * g)
        d_x = gamma * inv * inv * (
            normal * bend + g_normal * (dy_mean - dy) + dy_normal * (g_mean - g)
        )  # fmt: skip
        d_scale = over.flat(over.sum(g * unit))
    if not is_zero(g_scale):
        g = over.spread(g_scale)
        d_dy = _plus(d_dy, g * normal)
        d_x = _plus(d_x, g * unit)
    if not is_zero(g_offset):
        d_dy = _plus(d_dy, over.spread(g_offset) + emit("ZerosLike", dy))
    return [_like(d_dy, op.inputs[0]), _like(d_x, op.inputs[1]), d_scale]


def frozen_batch_norm_grad_grad(op: Operation, g_x: Any, g_scale: Any, g_offset: Any) -> list[Any]:
    """Gradients of an inference FusedBatchNormGrad node with respect to (dy, x, scale).

    Args:
        op: the FusedBatchNormGrad node.
        g_x: the gradient at `x_backprop`.
        g_scale: the gradient at `scale_backprop`.
        g_offset: the gradient at `offset_backprop`.
    """
    dy, x, scale, mean, variance = op.inputs[:5]
    dy, x = as_type(dy, dtypes.float32), as_type(x, dtypes.float32)
    over = Channels(op.attrs["data_format"])
    inv = emit("Rsqrt", over.spread(variance) + op.attrs["epsilon"])
    d_dy: Any = None
    d_x: Any = None
    d_scale = None
    if not is_zero(g_x):
        g = as_type(g_x, dtypes.float32)
        d_dy = g * (over.spread(scale) * inv)
        d_scale = over.flat(over.sum(g * dy) * inv)
    if not is_zero(g_scale):
        g = over.spread(g_scale) * inv
        d_dy = _plus(d_dy, g * (x - over.spread(mean)))
        d_x = g * dy
    if not is_zero(g_offset):
        d_dy = _plus(d_dy, over.spread(g_offset) + emit("ZerosLike", dy))
    return [_like(d_dy, op.inputs[0]), _like(d_x, op.inputs[1]), d_scale]


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def _like(value: Any, original: Tensor) -> Any:
    return None if value is None else as_type(value, original.dtype.base_dtype)
