"""A softplus of any scale, and dropout that keeps mean and variance of SELUs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock import shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import minimum
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.compare import greater_equal
from opdock.ops.nn import softplus
from opdock.ops.random import random_uniform

__all__ = ["alpha_dropout", "scaled_softplus"]

_SELU_OF_MINUS_INFINITY: Final = -1.7580993408473766


def alpha_dropout(
    x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Dropout for self-normalizing networks (Klambauer et al. 2017).

    What is dropped gets the least value of a SELU, and all is scaled and shifted so that mean and
    variance stay as they are.

    Args:
        x: a floating tensor.
        keep_prob: the probability that an element is kept.
        noise_shape: the shape of what is drawn, that of `x` by default; it is broadcast.
        seed: of the random numbers.
        name: a name for the operations.

    Returns:
        A tensor of the type and shape of `x`.

    Raises:
        ValueError: `keep_prob` is not in (0, 1].
    """
    with name_scope(name, "alpha_dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if isinstance(keep_prob, int | float | np.number) and not 0 < keep_prob <= 1:
            raise ValueError(
                "keep_prob must be a scalar tensor or a float in the range (0, 1], got "
                f"{float(keep_prob):g}"
            )
        keep = convert_to_tensor(keep_prob, x.dtype, name="keep_prob")
        shapes.with_rank(keep.raw_shape, 0)
        if constant_value(keep) == 1:
            kept: Tensor = x
            return kept
        drawn = random_uniform(
            shape(x) if noise_shape is None else noise_shape, seed=seed, dtype=x.dtype
        )
        mask = cast(greater_equal(drawn, 1 - keep), x.dtype)
        least = _SELU_OF_MINUS_INFINITY
        dropped = x * mask + least * (1 - mask)
        scale = (keep + keep * (1 - keep) * least**2) ** -0.5
        found: Tensor = scale * dropped - scale * least * (1 - keep)
        return found


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Tensor:
    """`alpha * ln(1 + exp(x / alpha))`, at most `clip`.

    Args:
        x: a floating tensor.
        alpha: how soft it is, a positive tensor whose shape broadcasts with that of `x`.
        clip: what it is at most, likewise; there is no bound when None.
        name: a name for the operations.

    Returns:
        A tensor of the type of `x`.
    """
    with name_scope(name, "scaled_softplus", [x, alpha, *([] if clip is None else [clip])]):
        x = convert_to_tensor(x, name="x")
        scale = convert_to_tensor(alpha, x.dtype, name="alpha")
        y = scale * softplus(x / scale)
        return y if clip is None else minimum(y, convert_to_tensor(clip, x.dtype, name="clip"))
