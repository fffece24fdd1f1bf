"""Portable kernels of the comparisons and choices that no scalar expression says."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_SCALARS = dtypes.NUMBERS | {dtypes.bool_}


def check_choice(condition: Any, then: Any) -> None:
    """Raises InvalidArgumentError unless there is one condition, or one for each element."""
    if condition.ndim and condition.shape != then.shape:
        raise invalid(
            "'condition' must be of the same shape as 'then' and 'else': "
            f"{dims(condition.shape)} vs. {dims(then.shape)}"
        )


@portable("Select", T=_SCALARS)
def select(xp: Any, sig: NodeSig) -> Any:
    """A choice by element, or by row for a vector condition."""

    def choose(condition: Any, then: Any, otherwise: Any) -> Any:
        if condition.ndim == 1 and then.ndim > 1:
            condition = xp.reshape(condition, (condition.shape[0],) + (1,) * (then.ndim - 1))
        else:
            check_choice(condition, then)
        return xp.where(condition, then, otherwise)

    return choose


@portable("ApproximateEqual", T=dtypes.NUMBERS)
def approximate_equal(xp: Any, sig: NodeSig) -> Any:
    """Whether the difference is below the tolerance."""
    tolerance = sig.attrs["tolerance"]
    narrow = sig.in_dtypes[0].base_dtype in (dtypes.float16, dtypes.bfloat16)

    def compare(x: Any, y: Any) -> Any:
        if narrow:
            x, y = xp.astype(x, xp.float32), xp.astype(y, xp.float32)
        # The larger less the smaller: an unsigned difference the other way would wrap around.
        if sig.in_dtypes[0].is_complex:
            return xp.abs(x - y) < tolerance
        difference = xp.maximum(x, y) - xp.minimum(x, y)
        return xp.astype(difference, xp.float64) < tolerance

    return compare
