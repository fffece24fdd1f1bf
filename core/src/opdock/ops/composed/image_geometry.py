"""Images turned, mirrored, cropped and padded: pixels as they were, in other places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import floormod, maximum, minimum
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, less
from opdock.ops.composed.case import case
from opdock.ops.control import cond, with_dependencies
from opdock.ops.elementary import round
from opdock.ops.joining import stack
from opdock.ops.matrix import transpose as permuted
from opdock.ops.padding import pad
from opdock.ops.random import random_uniform
from opdock.ops.slicing import slice
from opdock.ops.support.images import RANKS, Batch, checked, demand, dimensions, size_checks
from opdock.ops.tiling import reverse

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_WORDS = {
    "image": "a tensor of shape [height, width, channels], or such images in a batch.",
    "seed": "op seed; see `tf.set_random_seed`.",
    "k": "how many times to turn, a number or an int32 scalar.",
    "name": "a name for the operation.",
    "central_fraction": "how much of height and width to keep, in (0, 1].",
    "offset_height": "the row, a number or an int32 scalar.",
    "offset_width": "the column, a number or an int32 scalar.",
    "target_height": "rows of the result, a number or an int32 scalar.",
    "target_width": "columns of the result, a number or an int32 scalar.",
    "returns": "A tensor of the same type and rank.",
    "raises": "ValueError: the image has neither three nor four dimensions, or one is zero.",
}
"""What the functions here take."""
_BOUNDS = _WORDS["raises"] + "\nValueError: the box does not fit (InvalidArgumentError when run)."


def _rank_of(image: Tensor) -> int:
    """3 or 4; an image of unknown rank is taken to have 3, as in TF."""
    known = image.raw_shape
    rank = 3 if known is None else len(known)
    if rank not in (3, 4):
        raise ValueError(RANKS)
    return rank


# ---------------------------------------------------------------- mirrors
def _mirrored(image: Any, axis: int, scope: str) -> Tensor:
    """Along rows (0) or columns (1)."""
    with name_scope(None, scope, [image]):
        image = checked(image)
        if _rank_of(image) == 4:
            return reverse(image, [axis + 1])
        return _like_image(image, reverse(image, [axis]))


def _like_image(image: Tensor, result: Tensor) -> Tensor:
    result.set_shape([None] * 3 if image.raw_shape is None else image.raw_shape)
    return result


@extensible
@explained(_WORDS)
def flip_left_right(image: Any) -> Tensor:
    """Mirrors images: what was on the left is on the right."""
    return _mirrored(image, 1, "flip_left_right")


@extensible
@explained(_WORDS)
def flip_up_down(image: Any) -> Tensor:
    """Mirrors images: what was above is below."""
    return _mirrored(image, 0, "flip_up_down")


def _maybe_mirrored(image: Any, axis: int, seed: int | None, scope_name: str) -> Tensor:
    """Mirrors every other image, by chance."""
    with name_scope(None, scope_name, [image]) as scope:
        image = checked(image)
        if _rank_of(image) == 3:
            coin = less(random_uniform([], 0, 1.0, seed=seed), 0.5)
            return _like_image(
                image, cond(coin, lambda: reverse(image, [axis]), lambda: image, name=scope)
            )
        batch = shape(image)[0]
        coins = random_uniform([batch], 0, 1.0, seed=seed)
        flips = cast(round(reshape(coins, [batch, 1, 1, 1])), image.dtype)
        return flips * reverse(image, [axis + 1]) + (1 - flips) * image  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Mirrors each image from left to right with a chance of one half."""
    return _maybe_mirrored(image, 1, seed, "random_flip_left_right")


@extensible
@explained(_WORDS)
def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Mirrors each image upside down with a chance of one half."""
    return _maybe_mirrored(image, 0, seed, "random_flip_up_down")


# ---------------------------------------------------------------- turns
@extensible
@explained(_WORDS)
def transpose(image: Any, name: str | None = None) -> Tensor:
    """Swaps rows and columns of images."""
    with name_scope(name, "transpose", [image]):
        image = checked(image)
        order = [1, 0, 2] if _rank_of(image) == 3 else [0, 2, 1, 3]
        return permuted(image, order, name=name or "transpose")


@extensible
@explained(_WORDS)
def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Turns images counter-clockwise by 90 degrees, `k` times."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = checked(image)
        k = convert_to_tensor(k, dtypes.int32, "k")
        k.shape.assert_has_rank(0)
        turns = floormod(k, 4)
        rank = _rank_of(image)
        rows = rank - 3
        swap = [1, 0, 2] if rank == 3 else [0, 2, 1, 3]
        result: Tensor = case(
            [
                (equal(turns, 1), lambda: permuted(reverse(image, [rows + 1]), swap)),
                (equal(turns, 2), lambda: reverse(image, [rows, rows + 1])),
                (equal(turns, 3), lambda: reverse(permuted(image, swap), [rows + 1])),
            ],
            default=lambda: image,
            exclusive=True,
            name=scope,
        )
        known = image.raw_shape or (None,) * rank
        result.set_shape([*known[:rows], None, None, known[-1]])
        return result


# ---------------------------------------------------------------- crops
@extensible
@explained(_WORDS, raises=_WORDS["raises"] + "\nValueError: the fraction is out of range.")
def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of images."""
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        if not 0.0 < central_fraction <= 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        if central_fraction == 1.0:
            return image  # type: ignore[no-any-return]
        known = image.raw_shape
        if known is None or len(known) not in (3, 4):
            raise ValueError(
                "`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = "
                f"{None if known is None else len(known)}."
            )
        size_checks(image)
        lead = len(known) - 3
        starts, sizes = zip(
            *(_middle(image, lead + i, central_fraction) for i in range(2)), strict=True
        )
        out = slice(image, stack([*[0] * lead, *starts, 0]), stack([*[-1] * lead, *sizes, -1]))
        out.set_shape([*known[:lead], *(None if is_tensor(s) else s for s in sizes), known[-1]])
        return out


def _middle(image: Tensor, axis: int, fraction: float) -> tuple[Any, Any]:
    """(start, length) of the middle part of an axis, in tensors where its length is one."""
    length: Any = (image.raw_shape or ())[axis]
    if length is not None:
        start: Any = int((float(length) - float(length) * fraction) / 2)
    else:
        length = shape(image)[axis]
        whole: Any = cast(length, dtypes.float64)
        start = cast((whole - whole * fraction) / 2, dtypes.int32)
    return start, length - start * 2


def _shown(*dims: Any) -> list[Any]:
    return [None if is_tensor(d) else d for d in dims]


@extensible
@explained(_WORDS, raises=_BOUNDS)
def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Images with rows and columns of zeros around them, beginning at a given place."""
    with name_scope(None, "pad_to_bounding_box", [image]):
        whole = Batch(image)
        images = whole.images
        checks = size_checks(images)
        batch, height, width, depth = dimensions(images, 4)
        right = target_width - offset_width - width
        below = target_height - offset_height - height
        checks += demand(offset_height >= 0, "offset_height must be >= 0")
        checks += demand(offset_width >= 0, "offset_width must be >= 0")
        checks += demand(right >= 0, "width must be <= target - offset")
        checks += demand(below >= 0, "height must be <= target - offset")
        images = with_dependencies(checks, images)
        margins = reshape(stack([0, 0, offset_height, below, offset_width, right, 0, 0]), [4, 2])
        padded = pad(images, margins)
        padded.set_shape(_shown(batch, target_height, target_width, depth))
        return whole.back(padded)


@extensible
@explained(_WORDS, raises=_BOUNDS)
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """A box of images, by its upper left corner and its size."""
    with name_scope(None, "crop_to_bounding_box", [image]):
        whole = Batch(image)
        images = whole.images
        checks = size_checks(images)
        batch, height, width, depth = dimensions(images, 4)
        checks += demand(offset_width >= 0, "offset_width must be >= 0.")
        checks += demand(offset_height >= 0, "offset_height must be >= 0.")
        checks += demand(target_width > 0, "target_width must be > 0.")
        checks += demand(target_height > 0, "target_height must be > 0.")
        checks += demand(width >= target_width + offset_width, "width must be >= target + offset.")
        checks += demand(
            height >= target_height + offset_height, "height must be >= target + offset."
        )
        images = with_dependencies(checks, images)
        begin = stack([0, offset_height, offset_width, 0])
        cropped = slice(images, begin, stack([-1, target_height, target_width, -1]))
        cropped.set_shape(_shown(batch, target_height, target_width, depth))
        return whole.back(cropped)


def _either(numbers: Callable[..., Any], tensors: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A function of two dimensions, each a number or a tensor."""
    return lambda a, b: tensors(a, b) if is_tensor(a) or is_tensor(b) else numbers(a, b)


_largest = _either(max, maximum)
_smallest = _either(min, minimum)
_same = _either(lambda a, b: a == b, equal)


@extensible
@explained(_WORDS)
def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images of a given size: the middle where they are larger, with zeros where smaller."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        whole = Batch(image)
        checks = size_checks(whole.images)
        checks += demand(target_width > 0, "target_width must be > 0.")
        checks += demand(target_height > 0, "target_height must be > 0.")
        images = with_dependencies(checks, whole.images)
        target: Sequence[Any] = [
            with_dependencies(checks, t) if is_tensor(t) else t
            for t in (target_height, target_width)
        ]
        _, *size, _ = dimensions(images, 4)
        missing = [t - s for t, s in zip(target, size, strict=True)]
        cropped = crop_to_bounding_box(
            images,
            *(_largest(-m // 2, 0) for m in missing),
            *(_smallest(t, s) for t, s in zip(target, size, strict=True)),
        )
        resized = pad_to_bounding_box(cropped, *(_largest(m // 2, 0) for m in missing), *target)
        _, *reached, _ = dimensions(resized, 4)
        checks = []
        for axis, here, wanted in zip(("height", "width"), reached, target, strict=True):
            checks += demand(_same(here, wanted), f"resized {axis} is not correct.")
        return whole.back(with_dependencies(checks, resized))
