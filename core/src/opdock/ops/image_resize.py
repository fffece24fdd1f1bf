"""Resizing images: nearest, bilinear, bicubic, by area, and by a scale and a translation.

All are separable: a row of weights for each output line and each output column.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import shape
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_IMAGES = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double}"
_MORE_IMAGES = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}"
_CORNERS = "align_corners: bool = false"
_CENTERS = _CORNERS + ", half_pixel_centers: bool = false"
_SAMPLING = "kernel_type: string = 'lanczos3', antialias: bool = true"

resize_area_op = define_op(
    "ResizeArea", "images: T, size: int32 -> resized_images: float", f"{_IMAGES}, {_CORNERS}"
)
resize_bicubic_op = define_op(
    "ResizeBicubic", "images: T, size: int32 -> resized_images: float", f"{_IMAGES}, {_CENTERS}"
)
resize_bicubic_grad_op = define_op(
    "ResizeBicubicGrad", "grads: float, original_image: T -> output: T",
    f"T: {{float, double}}, {_CENTERS}",
)  # fmt: skip
resize_bilinear_op = define_op(
    "ResizeBilinear", "images: T, size: int32 -> resized_images: float",
    f"{_MORE_IMAGES}, {_CENTERS}",
)  # fmt: skip
resize_bilinear_grad_op = define_op(
    "ResizeBilinearGrad", "grads: float, original_image: T -> output: T",
    f"T: {{float, bfloat16, half, double}}, {_CENTERS}",
)  # fmt: skip
resize_nearest_neighbor_op = define_op(
    "ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T",
    f"{_IMAGES}, {_CENTERS}",
)  # fmt: skip
resize_nearest_neighbor_grad_op = define_op(
    "ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T",
    f"T: {{uint8, int8, int32, half, float, double}}, {_CENTERS}",
)  # fmt: skip
scale_and_translate_op = define_op(
    "ScaleAndTranslate",
    "images: T, size: int32, scale: float, translation: float -> resized_images: float",
    f"{_MORE_IMAGES}, {_SAMPLING}",
)
scale_and_translate_grad_op = define_op(
    "ScaleAndTranslateGrad",
    "grads: T, original_image: T, scale: float, translation: float -> output: T",
    f"T: {{float}}, {_SAMPLING}",
)
for _op in (
    resize_area_op,
    resize_bicubic_grad_op,
    resize_bilinear_grad_op,
    resize_nearest_neighbor_grad_op,
    scale_and_translate_grad_op,
):
    array_util.no_gradient(_op)


# ---------------------------------------------------------------- shapes
def sized_image(sig: ShapeSig, batch: int | None, size: int, channels: int | None) -> Shape:
    """The shape of images whose height and width are in input `size`.

    Raises:
        ValueError: that input is no vector of two.
    """
    array_util.with_dim(array_util.vector_length(sig.shapes[size]), 2)
    height, width = sig.const_shape(size) or (None, None)
    return (batch, height, width, channels)


@resize_area_op.shape
@resize_bicubic_op.shape
@resize_bilinear_op.shape
@resize_nearest_neighbor_op.shape
@resize_nearest_neighbor_grad_op.shape
@scale_and_translate_op.shape
def _resized_shape(sig: ShapeSig) -> Shape:
    images = shapes.with_rank(sig.shapes[0], 4)
    return sized_image(sig, images[0], 1, images[3])


@resize_bicubic_grad_op.shape
@resize_bilinear_grad_op.shape
@scale_and_translate_grad_op.shape
def _original_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[1]


# ---------------------------------------------------------------- gradients
def _centers(op: Operation) -> dict[str, Any]:
    return {name: op.attrs[name] for name in ("align_corners", "half_pixel_centers")}


@resize_nearest_neighbor_op.gradient
def _resize_nearest_neighbor_grad(op: Operation, grad: Any) -> list[Any]:
    images = op.inputs[0]
    known = array_util.subshape(images.raw_shape, 1, 3)
    size = list(known or ()) if shapes.is_fully_defined(known) else shape(images)[1:3]
    return [resize_nearest_neighbor_grad_op(grad, size, **_centers(op)), None]


@resize_bilinear_op.gradient
def _resize_bilinear_grad(op: Operation, grad: Any) -> list[Any]:
    if not op.inputs[0].dtype.is_floating:
        return [None, None]
    return [resize_bilinear_grad_op(grad, op.inputs[0], **_centers(op)), None]


@resize_bicubic_op.gradient
def _resize_bicubic_grad(op: Operation, grad: Any) -> list[Any]:
    # Halves have no gradient: TF defines none.
    if op.inputs[0].dtype not in (dtypes.float32, dtypes.float64):
        return [None, None]
    return [resize_bicubic_grad_op(grad, op.inputs[0], **_centers(op)), None]


@scale_and_translate_op.gradient
def _scale_and_translate_grad(op: Operation, grad: Any) -> list[Any]:
    images, _, scale, translation = op.inputs
    attrs = {name: op.attrs[name] for name in ("kernel_type", "antialias")}
    return [
        scale_and_translate_grad_op(grad, images, scale, translation, **attrs),
        None, None, None,
    ]  # fmt: skip


# ---------------------------------------------------------------- public functions
_WORDS = {
    "images": "a tensor of shape [batch, height, width, channels].",
    "size": "two int32 numbers: the new height and width.",
    "align_corners": "whether the centres of the corner pixels of input and output coincide.",
    "half_pixel_centers": "whether pixels have their centres at halves, as they should; not "
    "together with `align_corners`.",
    "name": "a name for the operation.",
    "returns": "A float32 tensor of shape [batch, new height, new width, channels].",
    "raises": "InvalidArgumentError: when run, for an image or a size without pixels.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS)
def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Resizes images by the mean over the area that each new pixel covers."""
    return resize_area_op(images, size, align_corners=align_corners, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def resize_bicubic(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:  # fmt: skip
    """Resizes images by bicubic interpolation."""
    out: Tensor = resize_bicubic_op(
        images, size, align_corners=align_corners,
        half_pixel_centers=half_pixel_centers, name=name,
    )  # fmt: skip
    return out


@extensible
@explained(_WORDS)
def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:  # fmt: skip
    """Resizes images by bilinear interpolation."""
    out: Tensor = resize_bilinear_op(
        images, size, align_corners=align_corners,
        half_pixel_centers=half_pixel_centers, name=name,
    )  # fmt: skip
    return out


@extensible
@explained(_WORDS, returns="A tensor of the same type, with the new height and width.")
def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:  # fmt: skip
    """Resizes images by taking the nearest pixel."""
    out: Tensor = resize_nearest_neighbor_op(
        images, size, align_corners=align_corners,
        half_pixel_centers=half_pixel_centers, name=name,
    )  # fmt: skip
    return out
