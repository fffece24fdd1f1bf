"""Losses of classifiers: cross entropies, log loss, hinge."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.losses.distance import as_floats, require
from opdock.losses.weighted import WORDS, Reduction, compute_weighted_loss
from opdock.ops.cast import cast
from opdock.ops.composed.confusion import remove_squeezable_dimensions
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.support.nn_util import emit
from opdock.ops.xent import (
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)

_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


@extensible
@explained(WORDS, labels="a tensor like `logits`, of 0 and 1.", logits="a tensor of scores.")
def hinge_loss(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted hinge loss of labels 0 and 1: `max(0, 1 - (2 * labels - 1) * logits)`."""
    require(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as inner:
        labels, logits = as_floats(labels, logits)
        ones = emit("OnesLike", labels)
        signs = emit("Sub", 2 * labels, ones)
        losses = emit("Relu", emit("Sub", ones, emit("Mul", signs, logits)))
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(WORDS, predictions="a tensor of probabilities.", epsilon="added inside the logarithms.")
def log_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy of probabilities: `-y log(p) - (1 - y) log(1 - p)`."""
    require(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as inner:
        labels, predictions = as_floats(labels, predictions)
        hits = emit("Mul", labels, emit("Log", predictions + epsilon))
        misses = emit("Mul", 1 - labels, emit("Log", 1 - predictions + epsilon))
        losses = -hits - misses
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(
    WORDS, multi_class_labels="a tensor like `logits`, of values in [0, 1].",
    logits="a floating-point tensor.",
    weights="a number, or a tensor of the rank of `logits` whose dimensions are 1 or equal.",
    label_smoothing="how far to move labels towards 1/2.",
    returns='The loss, of the type of `logits`: a scalar, or shaped like it for "none".',
)  # fmt: skip
def sigmoid_cross_entropy(
    multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy of independent classes."""
    require(multi_class_labels=multi_class_labels, logits=logits)
    values = [logits, multi_class_labels, weights]
    with name_scope(scope, "sigmoid_cross_entropy_loss", values) as inner:
        logits = convert_to_tensor(logits)
        labels = cast(multi_class_labels, logits.dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(
    WORDS, onehot_labels="a tensor like `logits`.",
    weights="a number, or a tensor that fits the losses.",
    label_smoothing="how far to move labels towards 1 / num_classes.",
    returns='The loss, of the type of `logits`: a scalar, or one per row for "none".',
)  # fmt: skip
def softmax_cross_entropy(
    onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy between distributions and the softmax of logits."""
    require(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as inner:
        logits = convert_to_tensor(logits)
        labels = cast(onehot_labels, logits.dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if label_smoothing > 0:
            rank = emit("Sub", emit("Rank", labels), 1)
            last = emit("Gather", emit("Shape", labels), rank)
            classes = cast(last, logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = emit("StopGradient", labels, name="labels_stop_gradient")
        losses = softmax_cross_entropy_with_logits_v2(labels, logits, name="xentropy")
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@extensible
@explained(
    WORDS,
    labels=(
        "int32 or int64 class ids, of rank one less than `logits` (a last dimension of 1 is "
        "dropped)."
    ),
    weights="a number, or a tensor that fits the losses (a last dimension of 1 is dropped).",
    returns='The loss, of the type of `logits`: a scalar, or shaped like `labels` for "none".',
)
def sparse_softmax_cross_entropy(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy between class ids and the softmax of logits."""
    require(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as inner:
        labels, logits = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
        weights = _squeezed_weights(weights, labels)
        losses = sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


def _squeezed_weights(weights: Any, labels: Tensor) -> Tensor:
    """`weights` without a last dimension that `labels` does not have."""
    weights = convert_to_tensor(weights)
    rank, labels_rank = weights.shape.ndims, labels.shape.ndims
    if rank is not None and labels_rank is not None:
        if rank - labels_rank == 1:
            return emit("Squeeze", weights, squeeze_dims=[-1])  # type: ignore[no-any-return]
        return weights  # type: ignore[no-any-return]
    if rank == 0 or (rank is not None and weights.raw_shape[-1] not in (None, 1)):
        return weights  # type: ignore[no-any-return]
    from opdock.ops.control import cond

    excess = emit("Sub", emit("Rank", weights), emit("Rank", labels))
    return cond(  # type: ignore[no-any-return]
        emit("Equal", 1, excess),
        lambda: emit("Squeeze", weights, squeeze_dims=[-1]),
        lambda: weights,
    )
