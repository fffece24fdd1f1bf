"""Convolutions that mirror or resize their images first, as TF's tool for inference makes them.

TF has kernels for them on the CPU alone, which never hold the wide images. Here they are what they
stand for, the ops one after the other, so that every device with a convolution has them.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.image_resize import sized_image
from opdock.ops.registry import Cost, Fails, Shape, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.ops.support.nn_util import emit
from opdock.ops.support.windows import check_length
from opdock.windows import Layout

__all__: list[str] = []

_ATTRS = "mode: {'REFLECT', 'SYMMETRIC'}, strides: list(int), padding: {'SAME', 'VALID'}"
_TYPES = "T: {half, float, double}"

fused_pad_conv2d_op = define_op(
    "FusedPadConv2D", "input: T, paddings: int32, filter: T -> output: T", f"{_TYPES}, {_ATTRS}"
)
fused_resize_and_pad_conv2d_op = define_op(
    "FusedResizeAndPadConv2D",
    "input: T, size: int32, paddings: int32, filter: T -> output: T",
    f"{_TYPES}, resize_align_corners: bool = false, {_ATTRS}",
)
for _op in (fused_pad_conv2d_op, fused_resize_and_pad_conv2d_op):
    _op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE))
    array_util.no_gradient(_op)


# ---------------------------------------------------------------- shapes
@fused_pad_conv2d_op.shape
def _fused_pad_conv2d_shape(sig: ShapeSig) -> Shape:
    return _convolved(sig, shapes.with_rank(sig.shapes[0], 4), 1)


@fused_resize_and_pad_conv2d_op.shape
def _fused_resize_and_pad_conv2d_shape(sig: ShapeSig) -> Shape:
    batch, _, _, channels = shapes.with_rank(sig.shapes[0], 4)
    return _convolved(sig, sized_image(sig, batch, 1, channels), 2)


def _convolved(sig: ShapeSig, images: Shape, paddings: int) -> Shape:
    """The shape of images with margins, which input `paddings` has, under the filter after it."""
    shapes.merge(shapes.with_rank(sig.shapes[paddings], 2), (4, 2))
    batch, *space, channels = _wider(sig, shapes.with_rank(images, 4), paddings)
    *window, inner, outputs = shapes.with_rank(sig.shapes[paddings + 1], 4)
    strides = sig.attrs["strides"]
    check_length(strides, 4, "Operation requires the stride")
    shapes.merge_dim(channels, inner)
    return (batch, *Layout(sig.attrs).output(space, window), outputs)


def _wider(sig: ShapeSig, images: tuple[int | None, ...], paddings: int) -> tuple[int | None, ...]:
    amounts = array_util.const_ints(sig, paddings)
    if amounts is None:
        return (None,) * 4
    if min(amounts) < 0:
        raise ValueError("Paddings must be non-negative")
    pairs = zip(images, amounts[::2], amounts[1::2], strict=True)
    return tuple(array_util.add(d, before + after) for d, before, after in pairs)


# ---------------------------------------------------------------- decompositions
@fused_pad_conv2d_op.decomposition
def _fused_pad_conv2d_parts(sig: Any, images: Tensor, paddings: Tensor, kernel: Tensor) -> Any:
    wide = emit("MirrorPad", images, paddings, mode=sig.attrs["mode"])
    strides, padding = sig.attrs["strides"], sig.attrs["padding"]
    return emit("Conv2D", wide, kernel, strides=strides, padding=padding)


@fused_resize_and_pad_conv2d_op.decomposition
def _fused_resize_and_pad_conv2d_parts(
    sig: Any, images: Tensor, size: Tensor, paddings: Tensor, kernel: Tensor
) -> Any:
    align = sig.attrs["resize_align_corners"]
    resized = emit("ResizeBilinear", images, size, align_corners=align)
    if images.dtype.base_dtype is not dtypes.float32:
        resized = emit("Cast", resized, DstT=images.dtype.base_dtype)
    return _fused_pad_conv2d_parts(sig, resized, paddings, kernel)
