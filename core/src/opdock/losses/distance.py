"""Losses that measure a distance: absolute, squared, Huber, pairwise, cosine."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.losses.collection import add_loss
from opdock.losses.weighted import (
    WORDS,
    Reduction,
    compute_weighted_loss,
    count_present,
    outer_axes,
    sum_all,
)
from opdock.ops.cast import cast
from opdock.ops.composed.weights_broadcast import assert_broadcastable
from opdock.ops.support.nn_util import emit, renamed, zeros_like

_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


def require(**named: Any) -> None:
    """Raises ValueError for the first argument that is None."""
    for name, value in named.items():
        if value is None:
            raise ValueError(f"{name} must not be None.")


def as_floats(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Both as float32; ValueError when their shapes are not compatible."""
    predictions = cast(predictions, dtypes.float32)
    labels = cast(labels, dtypes.float32)
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return labels, predictions


@extensible
@explained(WORDS)
def absolute_difference(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted absolute difference."""
    require(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as inner:
        labels, predictions = as_floats(labels, predictions)
        losses = emit("Abs", emit("Sub", predictions, labels))
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(WORDS)
def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted squared difference."""
    require(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as inner:
        labels, predictions = as_floats(labels, predictions)
        losses = emit("SquaredDifference", predictions, labels)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(WORDS, delta="where the loss turns linear.")
def huber_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted Huber loss: squared up to a difference of `delta`, linear beyond."""
    require(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as inner:
        labels, predictions = as_floats(labels, predictions)
        error = emit("Abs", emit("Sub", predictions, labels))
        quadratic = emit("Minimum", error, delta)
        # Written without a branch: the linear part is what exceeds delta.
        linear = emit("Sub", error, quadratic)
        half = convert_to_tensor(0.5, dtype=quadratic.dtype)
        squared = emit("Mul", half, emit("Mul", quadratic, quadratic))
        losses = emit("Add", squared, emit("Mul", delta, linear))
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(
    WORDS, labels="a tensor like `predictions`, batch first.", predictions="a tensor, batch first.",
    returns="A scalar.",
)  # fmt: skip
def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:  # fmt: skip
    """The mean over pairs of elements of the squared difference of their differences.

    Unlike the mean squared error, adding a constant to all predictions of a batch entry costs
    nothing.
    """
    require(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        factor = cast(weights, dtypes.float32)
        labels = cast(labels, dtypes.float32)
        with control_dependencies([assert_broadcastable(factor, labels)]):
            labels, predictions = as_floats(labels, predictions)
            diffs = emit("Sub", predictions, labels)
            axes = outer_axes(diffs)
            present = count_present(diffs, factor, per_batch=True)
            others = emit("Sub", present, 1.0)
            squares = emit("Sum", emit("Square", diffs), axes, keep_dims=True)
            first = emit("DivNoNan", squares, emit("Maximum", others, 0.0), name="value")
            total = emit("Sum", diffs, axes, keep_dims=True)
            pairs = emit("Maximum", emit("Mul", present, others), 0.0)
            second = emit("DivNoNan", emit("Square", total), pairs, name="value")
            loss = sum_all(emit("Mul", 2.0 * first - 2.0 * second, factor))
            any_present = emit("Greater", sum_all(present), 0.0)
            loss = emit("Select", any_present, loss, zeros_like(loss), name="value")
            add_loss(loss, loss_collection)
            return loss  # type: ignore[no-any-return]


@extensible
@explained(
    WORDS, axis="the dimension that holds the vectors.",
    weights="a number, or a tensor that fits the losses, whose `axis` has size 1.",
    dim="the deprecated name of `axis`.",
    returns='The loss in float32: a scalar, or one per vector for "none".',
)  # fmt: skip
def cosine_distance(
    labels: Any, predictions: Any, axis: int | None = None, weights: Any = 1.0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO, dim: int | None = None,
) -> Tensor:  # fmt: skip
    """One minus the inner product along `axis`; both sides are taken to be unit vectors already."""
    axis = renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    require(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as inner:
        labels, predictions = as_floats(labels, predictions)
        products = emit("Mul", predictions, labels)
        losses = 1 - emit("Sum", products, [axis], keep_dims=True)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)
