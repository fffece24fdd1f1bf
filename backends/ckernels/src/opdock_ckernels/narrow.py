"""16-bit floats for kernels that compute in single precision: widened before, rounded after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import DType, dtypes
from opdock_ckernels.pointwise import formula

__all__ = ["NARROW", "computed", "widened"]

NARROW = frozenset({dtypes.float16, dtypes.bfloat16})
"""The types that are computed in float32."""


def computed(dtype: DType) -> DType:
    """The type in which a kernel computes."""
    return dtypes.float32 if dtype in NARROW else dtype


def widened(
    device: Any, dtype: DType, run: Callable[..., Any], rounded: int | None = None
) -> Callable[..., Any]:
    """`run`, which knows no 16-bit floats, for a node of type `dtype`.

    Arguments of that type reach it as float32; results of float32 are rounded to the type.

    Args:
        device: the open device.
        dtype: the node's type.
        run: the kernel.
        rounded: how many of the first results are rounded; None for all.
    """
    if dtype not in NARROW:
        return run
    wide = formula(device, "cast(x, float32)", {"x": dtype}, dtypes.float32)
    round_ = formula(device, f"cast(x, {dtype.name})", {"x": dtypes.float32}, dtype)

    def enter(value: Any) -> Any:
        on_device = type(value) is not np.ndarray and not isinstance(value, np.generic)
        return wide(value) if on_device and value.dtype == dtype.np else value

    def leave(value: Any) -> Any:
        return round_(value) if value.dtype == np.float32 else value

    def call(*args: Any) -> Any:
        result = run(*(enter(a) for a in args))
        if isinstance(result, tuple):
            return tuple(leave(r) for r in result[:rounded]) + (
                () if rounded is None else result[rounded:]
            )
        return leave(result)

    return call
