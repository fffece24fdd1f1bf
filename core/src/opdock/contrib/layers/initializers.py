"""The initializers of contrib: functions of a shape, scaled by the fan of the layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.random import random_uniform, truncated_normal


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None,
    dtype: Any = dtypes.float32,
) -> Callable[..., Tensor]:  # fmt: skip
    """Random values with a variance of `factor / n`.

    Args:
        factor: the factor; 2.0 with FAN_IN is He et al. 2015, 1.0 with FAN_AVG Glorot & Bengio.
        mode: what n is: "FAN_IN", "FAN_OUT" or "FAN_AVG".
        uniform: draw uniformly instead of from a truncated normal.
        seed: the seed of the random numbers.
        dtype: a floating-point type.

    Returns:
        A function of a shape.

    Raises:
        TypeError: `dtype` is not floating-point, or the mode is unknown.
    """
    if not dtypes.as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initializer(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        found = dtypes.as_dtype(dtype)
        if not found.is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        whole = list(shape if partition_info is None else partition_info.full_shape)
        sizes = [float(d) for d in whole]
        window = math.prod(sizes[:-2])
        fan_out = window * (sizes[-1] if sizes else 1.0)
        fan_in = window * sizes[-2] if len(sizes) > 1 else fan_out
        n = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return random_uniform(shape, -limit, limit, found, seed=seed)
        # 1.3 makes up for the variance that cutting the normal takes away.
        return truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / n), found, seed=seed)

    return initializer


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32
) -> Callable[..., Tensor]:
    """Glorot & Bengio 2010: keeps the scale of gradients about the same in all layers.

    Args:
        uniform: draw uniformly instead of from a truncated normal.
        seed: the seed of the random numbers.
        dtype: a floating-point type.

    Returns:
        A function of a shape.
    """
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer
