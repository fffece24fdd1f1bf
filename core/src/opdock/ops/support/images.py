"""What functions on images share: checks of ranks and sizes, and images as batches."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor, is_tensor
from opdock.ops.array import expand_dims, rank, shape, squeeze
from opdock.ops.check import Assert, assert_greater_equal, assert_positive
from opdock.ops.control import with_dependencies
from opdock.ops.splitting import unstack

__all__ = ["Batch", "checked", "demand", "dimensions", "size_checks"]

RANKS = "'image' must have either 3 or 4 dimensions."


def demand(condition: Any, message: str) -> list[Operation]:
    """Checks a condition now, or where it is a tensor when it runs.

    Returns:
        The operations that check it then.

    Raises:
        ValueError: it is known not to hold.
    """
    if is_tensor(condition):
        return [Assert(condition, [message])]
    if not condition:
        raise ValueError(message)
    return []


def size_checks(image: Tensor) -> list[Operation]:
    """Checks that an image has at least three dimensions, all above zero.

    Returns:
        The operations that check when they run what is not known before.

    Raises:
        ValueError: it is known not to be so.
    """
    known = image.raw_shape
    if known is not None and len(known) < 3:
        raise ValueError("'image' must be at least three-dimensional.")
    if known is not None and 0 in known:
        raise ValueError(f"all dims of 'image.shape' must be > 0: {image.shape}")
    if shapes.is_fully_defined(known):
        return []
    positive = "all dims of 'image.shape' must be > 0."
    return [
        assert_positive(shape(image), [positive]),
        assert_greater_equal(rank(image), 3, message="'image' must be at least three-dimensional."),
    ]


def checked(image: Any) -> Tensor:
    """An image as a tensor that `size_checks` looks at before it is used."""
    tensor = convert_to_tensor(image, name="image")
    checks = size_checks(tensor)
    return with_dependencies(checks, tensor) if checks else tensor


def dimensions(image: Tensor, count: int) -> list[Any]:
    """Each dimension as a number where it is known, else as a tensor."""
    if shapes.is_fully_defined(image.raw_shape):
        return list(image.raw_shape or ())
    known = shapes.with_rank(image.raw_shape, count)
    dynamic = unstack(shape(image), count)
    return [d if s is None else s for s, d in zip(known, dynamic, strict=True)]


class Batch:
    """An image as a batch, and the way back.

    Attributes:
        images: of rank 4.
        is_one: whether there was a single image.
    """

    def __init__(self, image: Any) -> None:
        image = convert_to_tensor(image, name="image")
        known = image.raw_shape
        if known is not None and len(known) not in (3, 4):
            raise ValueError(RANKS)
        self.is_one = known is None or len(known) == 3
        if self.is_one:
            image = expand_dims(image, 0)
        if known is None:
            image.set_shape([None] * 4)
        self.images: Tensor = image

    def back(self, images: Tensor) -> Tensor:
        """A result with the rank that was given."""
        return squeeze(images, [0]) if self.is_one else images
