"""Batch normalization as today's TensorFlow has it: the running statistics come out of it."""

from __future__ import annotations

from typing import Any

from opdock.ops import norm

__all__ = ["fused_batch_norm"]


def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None,
    epsilon: float = 0.001, data_format: str = "NHWC", is_training: bool = True,
    name: str | None = None, exponential_avg_factor: float | None = 1.0,
) -> Any:  # fmt: skip
    """`tf.nn.fused_batch_norm`, which when training may be given running statistics too.

    Args:
        x, scale, offset, mean, variance, epsilon, data_format, is_training, name: as there.
        exponential_avg_factor: the batch's share in the running statistics; of 1, or None, they are
            the batch's alone.

    Returns:
        `(y, running_mean, running_variance)`.

    Raises:
        ValueError: statistics are asked for, and missing.
    """
    factor = 1.0 if exponential_avg_factor is None else exponential_avg_factor
    if not is_training:
        return norm.fused_batch_norm(
            x, scale, offset, mean, variance, epsilon, data_format, False, name
        )
    made = norm.fused_batch_norm(
        x, scale, offset, epsilon=epsilon, data_format=data_format, name=name
    )
    if factor == 1.0:
        return made
    if mean is None or variance is None:
        raise ValueError(
            "Both `mean` and `variance` must be a 1D tensor when `is_training` is False or "
            f"`exponential_avg_factor` != 1.0. Received: `mean` {mean!r} and "
            f"`variance` {variance!r}"
        )
    y, batch_mean, batch_variance = made
    kept = 1.0 - factor
    return y, mean * kept + batch_mean * factor, variance * kept + batch_variance * factor
