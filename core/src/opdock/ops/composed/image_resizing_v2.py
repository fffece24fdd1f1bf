"""Resizing of images as TF 2 has it: centres of pixels at halves, and filters that may be wide."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.composed.image_resizing import padded_by, resized_by
from opdock.ops.fill import zeros
from opdock.ops.image_resize import (
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
    scale_and_translate_op,
)

# Public as tf.compat.v2.image.*, which the mapping's tables say.
__all__: list[str] = []


class ResizeMethod:
    """How `tf.compat.v2.image.resize` finds new pixels."""

    BILINEAR: Final = "bilinear"
    NEAREST_NEIGHBOR: Final = "nearest"
    BICUBIC: Final = "bicubic"
    AREA: Final = "area"
    LANCZOS3: Final = "lanczos3"
    LANCZOS5: Final = "lanczos5"
    GAUSSIAN: Final = "gaussian"
    MITCHELLCUBIC: Final = "mitchellcubic"


_FILTERS = frozenset(("lanczos3", "lanczos5", "gaussian", "mitchellcubic"))
# The method -> what has half-pixel centres, and the filter that takes its place against aliasing.
_PLAIN: dict[str, tuple[Callable[..., Tensor], str]] = {
    "bilinear": (functools.partial(resize_bilinear, half_pixel_centers=True), "triangle"),
    "nearest": (functools.partial(resize_nearest_neighbor, half_pixel_centers=True), ""),
    "bicubic": (functools.partial(resize_bicubic, half_pixel_centers=True), "keyscubic"),
    "area": (resize_area, ""),
}


def _filtered(images: Tensor, size: Tensor, kernel: str, antialias: bool) -> Tensor:
    scale = cast(size, dtypes.float32) / cast(shape(images)[1:3], dtypes.float32)
    found: Tensor = scale_and_translate_op(
        images, size, scale, zeros([2]), kernel_type=kernel, antialias=antialias
    )
    return found


def resize_images_v2(
    images: Any, size: Any, method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False, antialias: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Resizes images by a method of choice.

    Args:
        images: a tensor of shape [height, width, channels], or such images in a batch.
        size: two int32 numbers: the new height and width.
        method: one of `ResizeMethod`.
        preserve_aspect_ratio: whether to keep the proportions, and `size` is an upper bound.
        antialias: whether pixels that go together are all looked at as images become smaller; areas
            always do so, and nearest neighbours never.
        name: a name for the operation.

    Returns:
        A tensor of the same rank; float32, but for nearest neighbours.

    Raises:
        ValueError: the image has neither three nor four dimensions, `size` is not two numbers, or
            there is no such method.
    """

    def resize(images: Tensor, size: Tensor) -> Tensor:
        if method in _FILTERS:
            return _filtered(images, size, method, antialias)
        if method not in _PLAIN:
            raise ValueError("Resize method is not implemented.")
        plain, wide = _PLAIN[method]
        return _filtered(images, size, wide, True) if antialias and wide else plain(images, size)

    return resized_by(resize, images, size, preserve_aspect_ratio, name, False)


def resize_image_with_pad_v2(
    image: Any, target_height: Any, target_width: Any, method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resizes images within a size, their proportions kept, and pads them to it with zeros.

    Args:
        image: a tensor of shape [height, width, channels], or such images in a batch.
        target_height: the new height.
        target_width: the new width.
        method, antialias: as `resize_images_v2` takes them.

    Raises:
        ValueError: the image has neither three nor four dimensions, or the size is not above zero.
    """

    def resize(images: Any, size: Any) -> Tensor:
        return resize_images_v2(images, size, method, antialias=antialias)

    return padded_by(resize, image, target_height, target_width)
