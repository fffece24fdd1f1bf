"""Resizing of one image or many by a method of choice, with or without its proportions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.constant_value import constant_value_as_shape
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.cast import cast
from opdock.ops.composed.image_geometry import pad_to_bounding_box
from opdock.ops.control import with_dependencies
from opdock.ops.elementary import floor, round
from opdock.ops.image_resize import (
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
)
from opdock.ops.support.images import Batch, demand, dimensions, size_checks

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []


class ResizeMethod:
    """How `tf.image.resize_images` finds new pixels."""

    BILINEAR: Final = 0
    NEAREST_NEIGHBOR: Final = 1
    BICUBIC: Final = 2
    AREA: Final = 3


_METHODS: Final[dict[Any, Callable[..., Tensor]]] = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
    # The names that TF 2 has for them, which TF 1.15 takes too.
    "bilinear": resize_bilinear,
    "nearest": resize_nearest_neighbor,
    "bicubic": resize_bicubic,
    "area": resize_area,
}

_WORDS = {
    "images": "a tensor of shape [height, width, channels], or such images in a batch.",
    "image": "a tensor of shape [height, width, channels], or such images in a batch.",
    "size": "two int32 numbers: the new height and width.",
    "method": "one of `tf.image.ResizeMethod`, or its name.",
    "align_corners": "whether the centres of the corner pixels of input and output coincide.",
    "preserve_aspect_ratio": "whether to keep the proportions, and `size` is an upper bound.",
    "name": "a name for the operation.",
    "target_height": "the new height.",
    "target_width": "the new width.",
    "returns": "A tensor of the same rank; float32, but for nearest neighbours and images that "
    "have the new size already.",
    "raises": "ValueError: the image has neither three nor four dimensions, `size` is not two "
    "numbers, or there is no such method.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS)
def resize_images(
    images: Any, size: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False,
    preserve_aspect_ratio: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Resizes images by a method of choice."""

    def resize(images: Tensor, size: Tensor) -> Tensor:
        if isinstance(method, Tensor) or method not in _METHODS:
            raise ValueError("Resize method is not implemented.")
        return _METHODS[method](images, size, align_corners=align_corners)

    return resized_by(resize, images, size, preserve_aspect_ratio, name, True)


def resized_by(
    resize: Callable[[Tensor, Tensor], Tensor], images: Any, size: Any,
    preserve_aspect_ratio: bool, name: str | None, keeps: bool,
) -> Tensor:  # fmt: skip
    """One image or many, made larger or smaller by a function of a batch and a size.

    Args:
        resize: the function.
        images, size, preserve_aspect_ratio, name: as `resize_images` takes them.
        keeps: whether images that are known to have the size stay what they are.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        known = images.raw_shape
        if known is None:
            raise ValueError("'images' contains no shape.")
        if len(known) not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        is_one = len(known) == 3
        if is_one:
            images = expand_dims(images, 0)
        size = _size(size)
        if preserve_aspect_ratio:
            size = _proportional(images, size)
        wanted = _known_size(size)
        if keeps and None not in wanted and list(known[-3:-1]) == wanted:
            return squeeze(images, [0]) if is_one else images
        images = resize(images, size)
        images.set_shape([None, *wanted, None])
        return squeeze(images, [0]) if is_one else images


def _size(size: Any) -> Tensor:
    """The new size as a tensor; ValueError when it is not two numbers."""
    try:
        tensor = convert_to_tensor(size, dtypes.int32, "size")
    except (TypeError, ValueError):
        raise ValueError("'size' must be a 1-D int32 Tensor") from None
    if not shapes.is_compatible(tensor.raw_shape, (2,)):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    return tensor


def _known_size(size: Tensor) -> list[int | None]:
    """Height and width, as far as they are known before anything runs."""
    known = constant_value_as_shape(size)
    return [None, None] if known.ndims is None else known.as_list()


def _proportional(images: Tensor, size: Tensor) -> Tensor:
    """The largest size within `size` that has the images' proportions."""
    bounds: list[Any] = [size[i] if d is None else d for i, d in enumerate(_known_size(size))]
    _, *current, _ = dimensions(images, 4)
    lengths: list[Any] = [cast(c, dtypes.float32) for c in current]
    scales = [cast(b, dtypes.float32) / c for b, c in zip(bounds, lengths, strict=True)]
    scale = minimum(*scales)
    scaled = [cast(round(scale * length), dtypes.int32) for length in lengths]
    return convert_to_tensor(scaled, dtypes.int32, "size")


@extensible
@explained(
    _WORDS,
    raises="ValueError: the image has neither three nor four dimensions, or the size is not "
    "above zero.",
)
def resize_image_with_pad(
    image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:  # fmt: skip
    """Resizes images within a size, their proportions kept, and pads them to it with zeros."""

    def resize(images: Any, size: Any) -> Tensor:
        return resize_images(images, size, method, align_corners=align_corners)

    return padded_by(resize, image, target_height, target_width)


def padded_by(
    resize: Callable[[Any, Any], Tensor], image: Any, target_height: Any, target_width: Any
) -> Tensor:
    """What a function makes of images that are to lie within a size, with zeros around it."""
    with name_scope(None, "resize_image_with_pad", [image]):
        whole = Batch(image)
        checks = size_checks(whole.images)
        checks += demand(target_width > 0, "target_width must be > 0.")
        checks += demand(target_height > 0, "target_height must be > 0.")
        images = with_dependencies(checks, whole.images)
        _, *current, _ = dimensions(images, 4)
        target = (target_height, target_width)
        lengths: list[Any] = [cast(c, dtypes.float64) for c in current]
        bounds: list[Any] = [cast(t, dtypes.float64) for t in target]
        ratio = maximum(lengths[1] / bounds[1], lengths[0] / bounds[0])
        reached = [length / ratio for length in lengths]
        size = [cast(floor(r), dtypes.int32) for r in reached]
        margins = [
            maximum(0, cast(floor((b - r) / 2), dtypes.int32))
            for b, r in zip(bounds, reached, strict=True)
        ]
        place = (*margins, target_height, target_width)
        return whole.back(pad_to_bounding_box(resize(images, size), *place))
