"""Portable kernels of the comparisons and choices that no scalar expression says."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.kernels.array_api import dims, dtype_of, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_SCALARS = dtypes.NUMBERS | {dtypes.bool_}


def check_choice(condition: Any, then: Any) -> bool:
    """Whether there is one condition a row.

    Raises:
        InvalidArgumentError: there is neither that, nor one for each element, nor one for all.
    """
    if not condition.ndim or condition.shape == then.shape:
        return False
    if condition.ndim == 1 and condition.shape == then.shape[:1]:
        return True
    raise invalid(
        "'condition' must be of the same shape as 'then' and 'else', or a vector over their first "
        f"dimension: {dims(condition.shape)} vs. {dims(then.shape)}"
    )


@portable("Select", T=_SCALARS)
def select(xp: Any, sig: NodeSig) -> Any:
    """A choice by element, or by row for a vector condition."""

    def choose(condition: Any, then: Any, otherwise: Any) -> Any:
        if check_choice(condition, then):
            condition = xp.reshape(condition, (condition.shape[0],) + (1,) * (then.ndim - 1))
        return xp.where(condition, then, otherwise)

    return choose


@portable("ApproximateEqual", T=dtypes.NUMBERS)
def approximate_equal(xp: Any, sig: NodeSig) -> Any:
    """Whether the difference is below the tolerance."""
    tolerance = float(np.float32(sig.attrs["tolerance"]))
    dtype = sig.in_dtypes[0].base_dtype
    if dtype.is_integer:
        # As in C, narrow ones are compared as int32, which no difference of theirs leaves.
        wide = dtypes.int32 if dtype.size < dtypes.int32.size else dtype
        most = _largest_below(tolerance, wide)
        return functools.partial(_whole_numbers_near, xp, most, dtype_of(xp, wide))

    def compare(x: Any, y: Any) -> Any:
        if dtype.size == 2:
            x, y = xp.astype(x, xp.float32), xp.astype(y, xp.float32)
        return xp.abs(x - y) < tolerance

    return compare


def _largest_below(limit: float, dtype: DType) -> int:
    """The largest number of a type below a limit, or -1 where only negative ones are."""
    return math.ceil(min(limit, dtype.max + 1)) - 1 if limit > 0 else -1


def _whole_numbers_near(xp: Any, most: int, element: Any, x: Any, y: Any) -> Any:
    x, y = xp.astype(x, element), xp.astype(y, element)
    # The larger less the smaller: an unsigned difference the other way would wrap around. A signed
    # one that is too large for its type is negative.
    difference = xp.maximum(x, y) - xp.minimum(x, y)
    near = difference <= most if most >= 0 else xp.zeros_like(difference, dtype=xp.bool)
    return near & (difference >= 0)
