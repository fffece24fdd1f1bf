"""Regularizers: functions from a variable to a scalar loss."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.reduce import reduce_sum
from opdock.ops.support.nn_util import emit

Regularizer = Callable[[Any], "Tensor | None"]


def _none(_: Any) -> None:
    return None


def _check(scale: Any, name: str = "scale") -> None:
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"{name} cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real) and float(scale) < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {float(scale):g}")


def _scaled(scale: Any, scope: str | None, name: str, size: Callable[[Any], Any]) -> Regularizer:
    _check(scale)
    if isinstance(scale, numbers.Real) and float(scale) == 0.0:
        return _none

    def penalty(weights: Any) -> Tensor:
        with name_scope(scope, name, [weights]) as node:
            factor = convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return emit("Mul", factor, size(weights), name=node)  # type: ignore[no-any-return]

    return penalty


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """`scale` times the sum of absolute values.

    Args:
        scale: a float; 0.0 regularizes nothing.
        scope: a name for the scope of the operations.

    Raises:
        ValueError: `scale` is an int or negative.
    """
    return _scaled(scale, scope, "l1_regularizer", lambda w: reduce_sum(emit("Abs", w)))


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """`scale` times half the sum of squares.

    Args:
        scale: a float; 0.0 regularizes nothing.
        scope: a name for the scope of the operations.

    Raises:
        ValueError: `scale` is an int or negative.
    """
    return _scaled(scale, scope, "l2_regularizer", lambda w: emit("L2Loss", w))


def l1_l2_regularizer(
    scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None
) -> Regularizer:
    """The sum of an L1 and an L2 regularizer.

    Args:
        scale_l1, scale_l2: floats; 0.0 leaves one out.
        scope: a name for the scope of the operations.

    Raises:
        ValueError: a scale is an int or negative.
    """
    _check(scale_l1, "scale_l1")
    _check(scale_l2, "scale_l2")
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope) or _none


def sum_regularizer(
    regularizer_list: Sequence[Regularizer | None], scope: str | None = None
) -> Regularizer | None:
    """The sum of several regularizers, None when there are none.

    Args:
        regularizer_list: regularizers; None entries are left out.
        scope: a name for the scope of the operations.
    """
    present = [r for r in regularizer_list if r is not None]
    if not present:
        return None

    def penalty(weights: Any) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]) as node:
            found = [t for t in (r(weights) for r in present) if t is not None]
            if len(found) < 2:
                return found[0] if found else None
            return emit("AddN", found, name=node)  # type: ignore[no-any-return]

    return penalty


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Tensor:
    """Sums a regularizer over variables and collects the sum as a loss.

    Args:
        regularizer: a function from a variable to a scalar or None.
        weights_list: the variables; the collection WEIGHTS by default.

    Returns:
        A scalar, also added to REGULARIZATION_LOSSES.

    Raises:
        ValueError: there are no variables, or the regularizer's result is no scalar.
    """
    weights = list(weights_list) if weights_list else get_collection(GraphKeys.WEIGHTS)
    if not weights:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=weights) as scope:
        penalties = [regularizer(w) for w in weights]
        present = [constant(0.0) if p is None else p for p in penalties]
        for p in present:
            if p.shape.ndims != 0:
                raise ValueError(
                    "regularizer must return a scalar Tensor instead of a Tensor with rank "
                    f"{p.shape.ndims}."
                )
        total: Tensor = emit("AddN", present, name=scope)
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total
