"""Images read at other places: projective transforms, and samples at points of any number.

TensorFlow has these ops in `tf.contrib.image` and `tf.contrib.resampler`.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import reshape, shape
from opdock.ops.fill import ones
from opdock.ops.image_resize import sized_image
from opdock.ops.joining import concat
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.solve import matrix_inverse
from opdock.ops.support import array_util
from opdock.shapes import Shape

# `tf.contrib.image` and `tf.contrib.resampler` have them.
__all__: list[str] = []

_TRANSFORMED = "dtype: {uint8, int32, int64, half, float, double}, interpolation: string"
_SAMPLED = "T: {half, bfloat16, float, double}"

image_projective_transform_op = define_op(
    "ImageProjectiveTransform",
    "images: dtype, transforms: float -> transformed_images: dtype",
    _TRANSFORMED,
)
image_projective_transform_v2_op = define_op(
    "ImageProjectiveTransformV2",
    "images: dtype, transforms: float, output_shape: int32 -> transformed_images: dtype",
    _TRANSFORMED,
)
resampler_op = define_op("Resampler", "data: T, warp: T -> output: T", _SAMPLED)
resampler_grad_op = define_op(
    "ResamplerGrad",
    "data: T, warp: T, grad_output: T -> grad_data: T, grad_warp: T",
    _SAMPLED,
).not_differentiable()
array_util.no_gradient(image_projective_transform_op)


# ---------------------------------------------------------------- shapes
def _check_interpolation(sig: ShapeSig) -> None:
    way = sig.attrs["interpolation"]
    if way not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"Invalid interpolation {way}. Supported types: NEAREST, BILINEAR")


@image_projective_transform_op.shape
def _image_projective_transform_shape(sig: ShapeSig) -> Shape:
    _check_interpolation(sig)
    return sig.shapes[0]


@image_projective_transform_v2_op.shape
def _image_projective_transform_v2_shape(sig: ShapeSig) -> Shape:
    _check_interpolation(sig)
    images = shapes.with_rank(sig.shapes[0], 4)
    return sized_image(sig, images[0], 2, images[3])


@resampler_op.shape
def _resampler_shape(sig: ShapeSig) -> Shape:
    data = shapes.with_rank_at_least(sig.shapes[0], 1)
    warp = shapes.with_rank_at_least(sig.shapes[1], 1)
    if warp is None:
        return None
    return (*warp[:-1], None if data is None else data[-1])


@resampler_grad_op.shape
def _resampler_grad_shape(sig: ShapeSig) -> list[Shape]:
    return [sig.shapes[0], sig.shapes[1]]


# ---------------------------------------------------------------- gradients
def matrices_of(transforms: Tensor) -> Tensor:
    """Projective transforms [n, 8], or one [8], as matrices [n, 3, 3]."""
    rows = reshape(transforms, [-1, 8])
    return reshape(concat([rows, ones([shape(rows)[0], 1], rows.dtype)], 1), [-1, 3, 3])


def transforms_of(matrices: Tensor) -> Tensor:
    """Matrices [n, 3, 3], or one, as projective transforms [n, 8]: the last entry is made 1."""
    rows = reshape(matrices, [-1, 9])
    return (rows / rows[:, 8:9])[:, :8]


@image_projective_transform_v2_op.gradient
def _image_projective_transform_v2_grad(op: Operation, grad: Any) -> list[Any]:
    images, transforms, _ = op.inputs
    back = transforms_of(matrix_inverse(matrices_of(transforms)))
    return [
        image_projective_transform_v2_op(
            grad, back, shape(images)[1:3], interpolation=op.attrs["interpolation"]
        ),
        None, None,
    ]  # fmt: skip


@resampler_op.gradient
def _resampler_grad(op: Operation, grad: Any) -> list[Any]:
    return list(resampler_grad_op(*op.inputs, grad))
