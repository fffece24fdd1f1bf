"""Portable kernels of sums of a list, and of the cross product."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def check_addends(first: Any, *others: Any) -> None:
    """Raises InvalidArgumentError unless all arrays of a sum have one shape."""
    for i, other in enumerate(others, 1):
        if other.shape != first.shape:
            raise invalid(
                "Inputs to operation of type AddN must have the same size and shape. "
                f"Input 0: {dims(first.shape)} != input {i}: {dims(other.shape)}"
            )


@portable("AddN", "AccumulateNV2", T=dtypes.NUMBERS)
def add_n(xp: Any, sig: NodeSig) -> Any:
    """The sum of the inputs, from left to right."""

    def total(first: Any, *others: Any) -> Any:
        if not others:
            return xp.asarray(first, copy=True)
        check_addends(first, *others)
        for other in others:
            first = xp.add(first, other)
        return first

    return total


def check_cross(a: Any, b: Any) -> None:
    """Raises InvalidArgumentError unless both are vectors of three, or as many of them."""
    if a.shape != b.shape or tuple(a.shape[-1:]) != (3,):
        raise invalid(
            "Both inputs must be of same shape with last dimension 3: "
            f"{dims(a.shape)} vs. {dims(b.shape)}"
        )


@portable("Cross", T=dtypes.REALS)
def cross(xp: Any, sig: NodeSig) -> Any:
    """The cross product along the last axis."""

    def product(a: Any, b: Any) -> Any:
        check_cross(a, b)
        parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
        return xp.stack(parts, axis=-1)

    return product
