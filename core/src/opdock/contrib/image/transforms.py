"""Images shifted, turned and projected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.fill import ones, zeros
from opdock.ops.image_warp import image_projective_transform_v2_op, matrices_of, transforms_of
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.trig import cos, sin

__all__ = [
    "angles_to_projective_transforms",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]

_TYPES: Final = (
    dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64,
)  # fmt: skip


# ---------------------------------------------------------------- images
def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Images of which each pixel comes from where a projective transform says.

    Args:
        images: one image [height, width] or [height, width, channels], or several, [batch, height,
            width, channels].
        transforms: eight numbers, or eight for each image: a0, a1, a2, b0, b1, b2, c0, c1, by which
            the pixel (x, y) comes from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k =
            c0 x + c1 y + 1. What comes from outside is zero.
        interpolation: "NEAREST" or "BILINEAR".
        output_shape: the height and width of the result; those of the images when None.
        name: a name for the operations.

    Returns:
        A tensor of the type and rank of the images.

    Raises:
        TypeError: images are of another type, or ranks are not what they may be.
        ValueError: `output_shape` has not two elements, or there is no such interpolation.
    """
    with name_scope(name, "transform"):
        given = convert_to_tensor(images, name="images")
        flat = convert_to_tensor(transforms, dtypes.float32, name="transforms")
        batch, back = _as_batch(given)
        if output_shape is None:
            output_shape = shape(batch)[1:3]
            known = constant_value(output_shape)
            output_shape = output_shape if known is None else known
        size = convert_to_tensor(output_shape, dtypes.int32, name="output_shape")
        if not size.shape.is_compatible_with([2]):
            raise ValueError(
                "output_shape must be a 1-D Tensor of 2 elements: new_height, new_width"
            )
        out: Tensor = image_projective_transform_v2_op(
            batch, _rows(flat, "transforms"), size, interpolation=interpolation.upper()
        )
        return back(out)


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Images turned around their middles, counterclockwise.

    Args:
        images: as of `transform`.
        angles: one angle, or one for each image, in radians.
        interpolation: "NEAREST" or "BILINEAR".
        name: a name for the operations.

    Returns:
        A tensor of the type and shape of the images; what comes from outside is zero.

    Raises:
        TypeError: images are of another type, or ranks are not what they may be.
    """
    with name_scope(name, "rotate"):
        given = convert_to_tensor(images)
        batch, back = _as_batch(given)
        height, width = (cast(shape(batch)[i], dtypes.float32)[None] for i in (1, 2))
        turned = angles_to_projective_transforms(angles, height, width)
        return back(transform(batch, turned, interpolation=interpolation))


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Images shifted.

    Args:
        images: as of `transform`.
        translations: dx and dy, or those of each image.
        interpolation: "NEAREST" or "BILINEAR".
        name: a name for the operations.

    Returns:
        A tensor of the type and shape of the images; what comes from outside is zero.

    Raises:
        TypeError: images are of another type, or ranks are not what they may be.
    """
    with name_scope(name, "translate"):
        shifted = translations_to_projective_transforms(translations)
        return transform(images, shifted, interpolation=interpolation)


def _as_batch(images: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Images as a batch of them, and what makes images as they were of a batch."""
    if images.dtype.base_dtype not in _TYPES:
        raise TypeError(f"Invalid dtype {images.dtype}.")
    if images.raw_shape is None:
        raise TypeError("image_or_images rank must be statically known")
    rank = len(images.raw_shape)
    if rank == 2:
        return images[None, :, :, None], lambda batch: batch[0, :, :, 0]
    if rank == 3:
        return images[None], lambda batch: batch[0]
    if rank == 4:
        return images, lambda batch: batch
    raise TypeError("Images should have rank between 2 and 4.")


# ---------------------------------------------------------------- transforms
def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Tensor:
    """The transforms that turn images around their middles.

    Args:
        angles: one angle or several, in radians, counterclockwise.
        image_height: the height of the images,
        image_width: and their width.
        name: a name for the operations.

    Returns:
        A tensor [angles, 8].

    Raises:
        TypeError: `angles` has a rank above 1.
    """
    with name_scope(name, "angles_to_projective_transforms"):
        given = convert_to_tensor(angles, dtypes.float32, name="angles")
        turns = given[None] if given.shape.ndims == 0 else given
        if turns.shape.ndims != 1:
            raise TypeError("Angles should have rank 0 or 1.")
        along, across = cos(turns), sin(turns)
        right, down = image_width - 1, image_height - 1
        x = (right - (along * right - across * down)) / 2.0
        y = (down - (across * right + along * down)) / 2.0
        columns = [expand_dims(part, 1) for part in (along, -across, x, across, along, y)]
        return concat([*columns, zeros([shape(turns)[0], 2])], 1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Tensor:
    """The transforms that shift images.

    Args:
        translations: dx and dy, or several such rows.
        name: a name for the operations.

    Returns:
        A tensor [rows, 8].

    Raises:
        TypeError: there is another rank, or none is known.
    """
    with name_scope(name, "translations_to_projective_transforms"):
        shifts = _rows(
            convert_to_tensor(translations, dtypes.float32, name="translations"), "translations"
        )
        count = shape(shifts)[0]
        one, zero = ones([count, 1]), zeros([count, 1])
        right, down = -shifts[:, 0, None], -shifts[:, 1, None]
        return concat([one, zero, right, zero, one, down, zeros([count, 2])], 1)


def _rows(given: Tensor, what: str) -> Tensor:
    rank = given.shape.ndims
    if rank is None:
        name = what.removesuffix("s")
        raise TypeError(f"{name}_or_{what} rank must be statically known")
    if rank not in (1, 2):
        raise TypeError(f"{what.capitalize()} should have rank 1 or 2.")
    return given[None] if rank == 1 else given


def compose_transforms(*transforms: Any) -> Tensor:
    """One transform of several: a pixel comes through the first, then the second, and so on.

    Args:
        *transforms: each eight numbers, or several rows of them, as many for all.

    Returns:
        A tensor [rows, 8].

    Raises:
        AssertionError: there is none.
        ValueError: one has another rank.
    """
    if not transforms:
        raise AssertionError("transforms cannot be empty")
    with name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for other in transforms[1:]:
            composed = matmul(composed, flat_transforms_to_matrices(other))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> Tensor:
    """Transforms as matrices: to multiply those is to do one transform after another.

    Args:
        transforms: eight numbers, or rows of them.

    Returns:
        A tensor [rows, 3, 3], whose last entries are 1.

    Raises:
        ValueError: there is another rank.
    """
    with name_scope("flat_transforms_to_matrices"):
        given = convert_to_tensor(transforms, name="transforms")
        if given.shape.ndims not in (1, 2):
            raise ValueError(f"Transforms should be 1D or 2D, got: {given}")
        return matrices_of(given)


def matrices_to_flat_transforms(transform_matrices: Any) -> Tensor:
    """Matrices as transforms; they are scaled so that their last entries are 1.

    Args:
        transform_matrices: [3, 3], or several such.

    Returns:
        A tensor [rows, 8].

    Raises:
        ValueError: there is another rank.
    """
    with name_scope("matrices_to_flat_transforms"):
        given = convert_to_tensor(transform_matrices, name="transform_matrices")
        if given.shape.ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {given}")
        return transforms_of(given)
