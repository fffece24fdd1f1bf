"""Dropout."""

from __future__ import annotations

import itertools
import logging
import numbers
from typing import Any

from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.support.nn_util import emit, renamed
from opdock.shapes import TensorShape

__all__ = ["dropout"]

_log = logging.getLogger("opdock")
_large_rates = itertools.count()
_MAX_WARNINGS = 5


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """The shape of the mask: `x`'s own, or the user's with None filled in from `x`."""
    if noise_shape is None:
        from opdock.ops.array import shape

        return shape(x)
    try:
        wanted = TensorShape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    dims, wanted_dims = x.raw_shape, wanted.raw
    if dims is not None and wanted_dims is not None and len(dims) == len(wanted_dims):
        filled = [d if w is None else w for w, d in zip(wanted_dims, dims, strict=True)]
        return noise_shape if None in filled else filled
    return noise_shape


@extensible
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Zeroes elements at random and scales the rest up, so that the expected sum stays the same.

    Args:
        x: a floating-point tensor.
        keep_prob: the probability that an element is kept (deprecated; `1 - rate`).
        noise_shape: a 1-D shape, broadcastable to `x`: elements that share an entry of it are
            kept or dropped together.
        seed: the op's seed; see `tf.set_random_seed`.
        name: a name for the operation.
        rate: the probability that an element is dropped, a number of [0, 1) or a scalar tensor.

    Returns:
        A tensor like `x`; `x` itself when nothing can be dropped.

    Raises:
        ValueError: `rate` is out of range, neither or both probabilities are given, or `x` is not
            floating-point.
    """
    try:
        complement = None if keep_prob is None else 1.0 - keep_prob
    except TypeError:
        raise ValueError(
            f"keep_prob must be a floating point number or Tensor (got {keep_prob!r})"
        ) from None
    rate = renamed("rate", rate, "keep_prob", complement)
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                "x has to be a floating point tensor since it's going to be scaled. "
                f"Got a {x.dtype.name} tensor instead."
            )
        if isinstance(rate, numbers.Real):
            _check_rate(float(rate))
            if rate == 0:
                return x  # type: ignore[no-any-return]
        rate = convert_to_tensor(rate, dtype=x.dtype, name="rate")
        rate.shape.assert_has_rank(0)
        known = constant_value(rate)
        if known is not None and known == 0:
            return x  # type: ignore[no-any-return]
        from opdock.ops.random import random_uniform

        noise = random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x.dtype)
        scale = 1 / (1 - rate)
        # A draw equal to the rate is kept: draws start at 0, so exactly `rate` of them are below.
        kept = emit("Cast", emit("GreaterEqual", noise, rate), DstT=x.dtype)
        result = x * scale * kept
        result.set_shape(x.get_shape())
        return result  # type: ignore[no-any-return]


def _check_rate(rate: float) -> None:
    if not 0 <= rate < 1:
        raise ValueError(
            f"rate must be a scalar tensor or a float in the range [0, 1), got {rate:g}"
        )
    if rate > 0.5 and next(_large_rates) < _MAX_WARNINGS:
        _log.warning(
            "Large dropout rate: %g (>0.5). `rate` is the share that is dropped, `keep_prob` the "
            "share that is kept. Please ensure that this is intended.",
            rate,
        )
