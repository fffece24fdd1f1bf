"""Parts of images: boxes resized to one size, and glimpses."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import shape
from opdock.ops.image_resize import sized_image
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_IMAGES = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}"

crop_and_resize_op = define_op(
    "CropAndResize", "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float",
    f"{_IMAGES}, method: {{'bilinear', 'nearest'}} = 'bilinear', extrapolation_value: float = 0",
)  # fmt: skip
crop_and_resize_grad_image_op = define_op(
    "CropAndResizeGradImage",
    "grads: float, boxes: float, box_ind: int32, image_size: int32 -> output: T",
    "T: {float, half, double}, method: {'bilinear', 'nearest'} = 'bilinear'",
)
crop_and_resize_grad_boxes_op = define_op(
    "CropAndResizeGradBoxes",
    "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
    f"{_IMAGES}, method: {{'bilinear'}} = 'bilinear'",
)
for _op in (crop_and_resize_grad_image_op, crop_and_resize_grad_boxes_op):
    array_util.no_gradient(_op)
extract_glimpse_op = define_op(
    "ExtractGlimpse", "input: float, size: int32, offsets: float -> glimpse: float",
    "centered: bool = true, normalized: bool = true, uniform_noise: bool = true, "
    "noise: string = 'uniform'",
).not_differentiable()  # fmt: skip
# What lies outside the image is noise: no seed, no two nodes alike.
extract_glimpse_op.declare(Traits(random=True, fold=False, merge=False))


# ---------------------------------------------------------------- shapes
@crop_and_resize_op.shape
def _crop_and_resize_shape(sig: ShapeSig) -> Shape:
    image = shapes.with_rank(sig.shapes[0], 4)
    boxes, which = shapes.with_rank(sig.shapes[1], 2), shapes.with_rank(sig.shapes[2], 1)
    count = shapes.merge_dim(boxes[0], which[0])
    array_util.with_dim(boxes[1], 4)
    return sized_image(sig, count, 3, image[3])


@crop_and_resize_grad_image_op.shape
def _crop_and_resize_grad_image_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(3), 4)


@crop_and_resize_grad_boxes_op.shape
def _crop_and_resize_grad_boxes_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[2]


@extract_glimpse_op.shape
def _extract_glimpse_shape(sig: ShapeSig) -> Shape:
    images, offsets = shapes.with_rank(sig.shapes[0], 4), shapes.with_rank(sig.shapes[2], 2)
    batch = shapes.merge_dim(images[0], offsets[0])
    array_util.with_dim(offsets[1], 2)
    if sig.attrs["uniform_noise"] and sig.attrs["noise"] not in ("", b"", "uniform", b"uniform"):
        raise ValueError("The uniform_noise and noise should not be specified at the same time")
    return sized_image(sig, batch, 1, images[3])


# ---------------------------------------------------------------- gradients
@crop_and_resize_op.gradient
def _crop_and_resize_grad(op: Operation, grad: Any) -> list[Any]:
    image, boxes, which, _ = op.inputs
    on_image = None
    if image.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        known = image.raw_shape
        size = list(known or ()) if shapes.is_fully_defined(known) else shape(image)
        on_image = crop_and_resize_grad_image_op(
            grad, boxes, which, size, T=image.dtype, method=op.attrs["method"]
        )
    # Boxes of nearest pixels have no gradient of their own: TF takes that of bilinear ones.
    return [on_image, crop_and_resize_grad_boxes_op(grad, image, boxes, which), None, None]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "image": "a tensor of shape [batch, height, width, channels].",
    "boxes": "float32 [n, 4]: y1, x1, y2, x2 of each box, 1 being the last row or column.",
    "box_ind": "another name of `box_indices`.",
    "box_indices": "int32 [n]: the image that each box is of.",
    "crop_size": "two int32 numbers: the height and width of all crops.",
    "method": '"bilinear" or "nearest".',
    "extrapolation_value": "what lies outside the image.",
    "name": "a name for the operation.",
    "input": "a float32 tensor of shape [batch, height, width, channels].",
    "size": "two int32 numbers: the height and width of the glimpses.",
    "offsets": "float32 [batch, 2]: y and x of the middle of each glimpse.",
    "centered": "whether (0, 0) is the middle of the image; else its upper left corner.",
    "normalized": "whether 1 is the edge of the image; else offsets are pixels.",
    "uniform_noise": "whether what lies outside the image is uniform noise; else Gaussian noise.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    returns="A float32 tensor of shape [n, crop height, crop width, channels].",
    raises="ValueError: both names of the indices are given.\n"
    "OutOfRangeError: when run, an index is not that of an image.",
)
def crop_and_resize(
    image: Any, boxes: Any, box_ind: Any = None, crop_size: Any = None, method: str = "bilinear",
    extrapolation_value: float = 0, name: str | None = None, box_indices: Any = None,
) -> Tensor:  # fmt: skip
    """Boxes of images, all resized to one size with their corners aligned."""
    which = array_util.renamed("box_indices", box_indices, "box_ind", box_ind)
    out: Tensor = crop_and_resize_op(
        image, boxes, which, crop_size, method=method,
        extrapolation_value=extrapolation_value, name=name,
    )  # fmt: skip
    return out


@extensible
@explained(_WORDS, returns="A float32 tensor of shape [batch, glimpse height, width, channels].")
def extract_glimpse(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
    uniform_noise: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Windows of images around a place each, with noise where they reach beyond the image."""
    out: Tensor = extract_glimpse_op(
        input, size, offsets, centered=centered, normalized=normalized,
        uniform_noise=uniform_noise, name=name,
    )  # fmt: skip
    return out


def extract_glimpse_v2(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
    noise: str = "uniform", name: str | None = None,
) -> Tensor:  # fmt: skip
    """`tf.image.extract_glimpse` as TF 2 has it.

    Args:
        input, size, offsets, centered, normalized, name: as there.
        noise: what lies outside the image, "uniform" or "gaussian" noise, or "zero".
    """
    out: Tensor = extract_glimpse_op(
        input, size, offsets, centered=centered, normalized=normalized, noise=noise,
        uniform_noise=False, name=name,
    )  # fmt: skip
    return out
