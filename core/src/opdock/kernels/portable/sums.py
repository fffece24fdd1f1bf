"""Portable kernels of sums of a list, and of the cross product."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("AddN", "AccumulateNV2", T=dtypes.NUMBERS)
def add_n(xp: Any, sig: NodeSig) -> Any:
    """The sum of the inputs, from left to right."""

    def total(first: Any, *others: Any) -> Any:
        if not others:
            return xp.asarray(first, copy=True)
        for other in others:
            if other.shape != first.shape:
                raise invalid(
                    "Inputs to operation of type AddN must have the same size and shape. "
                    f"Input 0: {dims(first.shape)} != {dims(other.shape)}"
                )
            first = xp.add(first, other)
        return first

    return total


@portable("Cross", T=dtypes.REALS)
def cross(xp: Any, sig: NodeSig) -> Any:
    """The cross product along the last axis."""

    def product(a: Any, b: Any) -> Any:
        parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
        return xp.stack(parts, axis=-1)

    return product
