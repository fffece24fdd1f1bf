"""The losses before `tf.losses`: predictions before labels, and weights of a lower rank.

A weight is of what it has dimensions for: of each example, where it is a vector.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.docstrings import explained
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import multiply, squared_difference, subtract
from opdock.ops.array import reshape, shape, size, squeeze
from opdock.ops.cast import cast
from opdock.ops.compare import equal, not_equal
from opdock.ops.composed.division import div, div_no_nan
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import log, square
from opdock.ops.fill import ones, ones_like, zeros_like
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.nn import relu
from opdock.ops.reduce import reduce_prod, reduce_sum
from opdock.ops.select import where
from opdock.ops.sums import add_n
from opdock.ops.xent import (
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from opdock.util.deprecation import deprecated_argument_lookup

__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_losses", "get_total_loss", "hinge_loss", "log_loss",
    "mean_pairwise_squared_error", "mean_squared_error", "sigmoid_cross_entropy",
    "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]  # fmt: skip

_WORDS = {
    "predictions": "a tensor.",
    "labels": "a tensor of its shape.",
    "logits": "a tensor, of [examples, classes] where there are classes.",
    "weights": "a number, or a tensor of the first dimensions of the loss.",
    "scope": "a name for the operations.",
    "label_smoothing": "how far labels are moved from 0 and 1 towards all being alike.",
    "returns": "The mean over what has a weight, a scalar that is collected.",
    "raises": "ValueError: the shapes do not fit.",
}
"""What the functions here take."""


@add_arg_scope
def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection.

    Args:
        loss: the loss.
        loss_collection: the collection; none if None.
    """
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection.

    Args:
        scope: how names begin, or None.
        loss_collection: the collection.
    """
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses of regularizers, those whose names begin with `scope` if it is given."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Tensor:
    """The sum of all losses.

    Args:
        add_regularization_losses: whether those of regularizers count.
        name: a name for the sum.

    Raises:
        ValueError: there is no loss.
    """
    losses = get_losses()
    if add_regularization_losses:
        losses += get_regularization_losses()
    return add_n(losses, name=name)


@explained(_WORDS, losses="a tensor of losses.")
def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """The mean of losses over those that have a weight."""
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype
        losses = cast(losses, dtypes.float32)
        weights = _weights(weights, losses, "losses")
        if weights.shape.ndims > 1 and weights.shape.as_list()[-1] in (1, None):
            weights = squeeze(weights, [-1])
        if weights.shape.ndims > losses.shape.ndims:
            raise ValueError(
                f"weights {weights.shape} have more dimensions than the losses {losses.shape}"
            )
        total = _scaled(losses, weights)
        loss: Tensor = cast(_mean(total, reduce_sum(_present(losses, weights))), dtype)
        add_loss(loss)
        return loss


def _weights(weights: Any, losses: Tensor, what: str) -> Any:
    weights = cast(convert_to_tensor(weights), dtypes.float32)
    for name, tensor in ((what, losses), ("weights", weights)):
        if tensor.shape.ndims is None:
            raise ValueError(f"{name}.get_shape().ndims cannot be None")
    return weights


def _inner(losses: Tensor, rank: int) -> list[int]:
    """The dimensions of losses from one on."""
    return list(range(rank, losses.shape.ndims or 0))


def _mean(total: Any, count: Any) -> Any:
    return div_no_nan(total, count, name="value")


def _scaled(losses: Tensor, weights: Tensor) -> Tensor:
    """The sum of the losses, each times the weight of its first dimensions."""
    own = reduce_sum(losses, axis=_inner(losses, weights.shape.ndims or 0))
    return reduce_sum(multiply(own, weights))


def _present(losses: Tensor, weights: Tensor) -> Tensor:
    """How many elements of each example have a weight."""
    rank = weights.shape.ndims or 0
    if rank == 0:
        examples = shape(losses)[0]
        each = div(cast(size(losses), dtypes.float32), cast(examples, dtypes.float32))
        each = where(equal(weights, 0), zeros_like(each), each)
        return multiply(ones(reshape(examples, [1])), each)
    counted = reduce_sum(cast(not_equal(weights, 0), dtypes.float32), axis=list(range(1, rank)))
    return multiply(counted, cast(reduce_prod(shape(losses)[rank:]), dtypes.float32))


def _floats(predictions: Any, labels: Any) -> tuple[Tensor, Tensor]:
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return cast(predictions, dtypes.float32), cast(labels, dtypes.float32)


@explained(_WORDS)
def absolute_difference(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """The absolute difference."""
    given = [predictions, labels, weights]
    with name_scope(scope, "absolute_difference", given) as inner:
        predictions, labels = _floats(predictions, labels)
        return compute_weighted_loss(absolute(subtract(predictions, labels)), weights, inner)


@explained(_WORDS)
def mean_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """The squared difference."""
    given = [predictions, labels, weights]
    with name_scope(scope, "mean_squared_error", given) as inner:
        predictions, labels = _floats(predictions, labels)
        return compute_weighted_loss(squared_difference(predictions, labels), weights, inner)


@explained(_WORDS, epsilon="added to what a logarithm is taken of.")
def log_loss(
    predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7,
    scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The negative log-likelihood of labels, of probabilities."""
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as inner:
        predictions, labels = _floats(predictions, labels)
        losses = -multiply(labels, log(predictions + epsilon)) - multiply(
            1 - labels, log(1 - predictions + epsilon)
        )
        return compute_weighted_loss(losses, weights, inner)


@explained(_WORDS, labels="a tensor of its shape, of 0 and 1.", returns="The loss of each element.")
def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Tensor:
    """The hinge loss, neither weighted nor collected."""
    with name_scope(scope, "hinge_loss", [logits, labels]):
        logits.shape.assert_is_compatible_with(labels.shape)
        labels = cast(labels, dtypes.float32)
        every = ones_like(labels)
        signs = subtract(2 * labels, every)
        return relu(subtract(every, multiply(signs, logits)))


@explained(_WORDS, multi_class_labels="a tensor of the shape of `logits`, from 0 to 1.")
def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of each class by itself."""
    given = [logits, multi_class_labels, weights]
    with name_scope(scope, "sigmoid_cross_entropy_loss", given) as inner:
        logits.shape.assert_is_compatible_with(multi_class_labels.shape)
        labels = cast(multi_class_labels, logits.dtype)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, inner)


@explained(_WORDS, onehot_labels="rows of the probability of each class.")
def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of classes of which there is one."""
    given = [logits, onehot_labels, weights]
    with name_scope(scope, "softmax_cross_entropy_loss", given) as inner:
        logits.shape.assert_is_compatible_with(onehot_labels.shape)
        labels = cast(onehot_labels, logits.dtype)
        if label_smoothing > 0:
            classes = cast(shape(labels)[1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        losses = softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, inner)


@explained(_WORDS, labels="the class of each example.")
def sparse_softmax_cross_entropy(
    logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """The cross entropy of classes of which there is one, whose number is given."""
    given = [logits, labels, weights]
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", given) as inner:
        labels = reshape(labels, [shape(labels)[0]])
        losses = sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, inner)


@explained(_WORDS)
def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """The squared difference of the differences of two elements, over all pairs of an example."""
    given = [predictions, labels, weights]
    with name_scope(scope, "mean_pairwise_squared_error", given):
        diffs = subtract(*_floats(predictions, labels))
        weights = _weights(weights, diffs, "diffs")
        axes = _inner(diffs, 1)
        present = _present(diffs, weights)
        first = 2.0 * _mean(reduce_sum(square(diffs), axis=axes), present)
        second = 2.0 * _mean(square(reduce_sum(diffs, axis=axes)), square(present))
        loss = _scaled(first - second, weights)
        loss = where(reduce_sum(present) > 0, loss, zeros_like(loss), name="value")
        add_loss(loss)
        return loss


@explained(
    _WORDS, axis="the dimension along which there are vectors of length 1.",
    dim="the deprecated name of `axis`.",
)  # fmt: skip
def cosine_distance(
    predictions: Any, labels: Any = None, axis: int | None = None, weights: Any = 1.0,
    scope: str | None = None, dim: int | None = None,
) -> Tensor:  # fmt: skip
    """The cosine distance."""
    axis = deprecated_argument_lookup("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    given = [predictions, labels, weights]
    with name_scope(scope, "cosine_distance_loss", given) as inner:
        losses = 1 - reduce_sum(multiply(*_floats(predictions, labels)), axis=[axis])
        return compute_weighted_loss(losses, weights, inner)
