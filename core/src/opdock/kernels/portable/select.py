"""Portable kernels of selection by condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import (
    device_ints,
    index_type,
    ints,
    invalid,
)
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("Where", T=dtypes.NUMBERS | {dtypes.bool})
def where(xp: Any, sig: NodeSig) -> Any:
    """The coordinates of the elements that are not zero."""

    def run(condition: Any) -> Any:
        if len(condition.shape) == 0:
            rows = 1 if bool(condition) else 0
            return xp.zeros((rows, 0), dtype=xp.int64, device=getattr(condition, "device", None))
        found = xp.nonzero(condition)
        return xp.astype(xp.stack(found, axis=1), xp.int64)

    return run


def one_hot_axis(depth: Any, given: int, rank: int) -> tuple[int, int]:
    """The size and the place of the new dimension beside `rank` others.

    Raises:
        InvalidArgumentError: the size is negative, or the place not there.
    """
    (size,) = ints(depth)
    if size < 0:
        raise invalid(f"depth must be non-negative, got: {size}")
    if not -1 <= given <= rank:
        raise invalid(f"Expected axis to be -1 or between [0, {rank + 1}).  But received: {given}")
    return size, rank if given == -1 else given


@portable("OneHot", host_inputs=("depth",))
def one_hot(xp: Any, sig: NodeSig) -> Any:
    """One value at the index, another elsewhere."""
    given = sig.attrs["axis"]

    def run(indices: Any, depth: Any, on_value: Any, off_value: Any) -> Any:
        rank = len(indices.shape)
        n, axis = one_hot_axis(depth, given, rank)
        column = [1] * (rank + 1)
        column[axis] = n
        line = xp.reshape(device_ints(xp, np.arange(n), indices), tuple(column))
        hot = xp.expand_dims(xp.astype(indices, index_type(xp)), axis=axis) == line
        return xp.where(hot, on_value, off_value)

    return run
