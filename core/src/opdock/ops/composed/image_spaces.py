"""Colours as linear functions of one another: grey, YIQ and YUV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, rank, shape
from opdock.ops.check import assert_equal, assert_greater_equal
from opdock.ops.composed.image_adjust import convert_image_dtype
from opdock.ops.composed.tensordot import tensordot
from opdock.ops.control import with_dependencies
from opdock.ops.fill import ones
from opdock.ops.joining import concat
from opdock.ops.tiling import tile

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_LUMA: Final = (0.2989, 0.5870, 0.1140)
_RGB_TO_YIQ: Final = (
    (0.299, 0.59590059, 0.2115),
    (0.587, -0.27455667, -0.52273617),
    (0.114, -0.32134392, 0.31119955),
)
_YIQ_TO_RGB: Final = (
    (1, 1, 1),
    (0.95598634, -0.27201283, -1.10674021),
    (0.6208248, -0.64720424, 1.70423049),
)
_RGB_TO_YUV: Final = (
    (0.299, -0.14714119, 0.61497538),
    (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)
_YUV_TO_RGB: Final = (
    (1, 1, 1),
    (0, -0.394642334, 2.03206185),
    (1.13988303, -0.58062185, 0),
)
_WORDS = {
    "images": "a tensor whose last dimension has 3 entries; floats in [0, 1].",
    "name": "a name for the operation.",
    "returns": "A tensor of the same shape and type.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, returns="A tensor of the same type, whose last dimension has 1 entry.")
def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Colours as grey."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        single = convert_image_dtype(images, dtypes.float32)
        gray = expand_dims(tensordot(single, list(_LUMA), [-1, -1]), -1)
        return convert_image_dtype(gray, images.dtype, name=scope)


@extensible
@explained(
    _WORDS,
    images="a tensor whose last dimension has 1 entry.",
    returns="A tensor of the same type, whose last dimension has 3 entries.",
    raises="ValueError: the last dimension has more than one entry "
    "(InvalidArgumentError when run).",
)
def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Grey as colours that are all the same."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = _gray(convert_to_tensor(images, name="images"))
        lead = ones(expand_dims(rank(images) - 1, 0), dtypes.int32)
        out = tile(images, concat([lead, [3]], 0), name=scope)
        known = images.raw_shape
        out.set_shape(None if known is None else [*known[:-1], 3])
        return out


def _gray(images: Tensor) -> Tensor:
    """Images with one channel; ValueError when they are known not to have one."""
    known = images.raw_shape
    channels = "Last dimension of a grayscale image should be size 1."
    dimensions = "A grayscale image must be at least two-dimensional."
    if known is not None and len(known) < 2:
        raise ValueError(dimensions)
    if shapes.is_fully_defined(known):
        if known is not None and known[-1] != 1:
            raise ValueError(channels)
        return images
    checks = [
        assert_equal(shape(images)[-1], 1, message=channels),
        assert_greater_equal(rank(images), 3, message=dimensions),
    ]
    return with_dependencies(checks, images)  # type: ignore[no-any-return]


def _mapped(images: Any, matrix: Sequence[Sequence[float]]) -> Tensor:
    """The last dimension times a matrix."""
    images = convert_to_tensor(images, name="images")
    kernel = convert_to_tensor(matrix, images.dtype, "kernel")
    last = len(images.raw_shape) - 1 if images.raw_shape is not None else -1
    return tensordot(images, kernel, axes=[[last], [0]])


@extensible
@explained(_WORDS)
def rgb_to_yiq(images: Any) -> Tensor:
    """Colours as brightness and two differences, as NTSC sent them."""
    return _mapped(images, _RGB_TO_YIQ)


@extensible
@explained(_WORDS)
def yiq_to_rgb(images: Any) -> Tensor:
    """NTSC's brightness and differences as colours."""
    return _mapped(images, _YIQ_TO_RGB)


@extensible
@explained(_WORDS)
def rgb_to_yuv(images: Any) -> Tensor:
    """Colours as brightness and two differences, as PAL sent them."""
    return _mapped(images, _RGB_TO_YUV)


@extensible
@explained(_WORDS)
def yuv_to_rgb(images: Any) -> Tensor:
    """PAL's brightness and differences as colours."""
    return _mapped(images, _YUV_TO_RGB)
