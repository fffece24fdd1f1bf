"""Losses of examples as one number, however many replicas share a batch."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes import replication
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.array import expand_dims, rank, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.compare import equal
from opdock.ops.composed.check_static import assert_rank_at_least
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.control import cond
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_sum

__all__ = ["compute_average_loss", "scale_regularization_loss"]


@extensible
def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of the losses of examples, divided by the size of the batch.

    Args:
        per_example_loss: losses, at least [batch].
        sample_weight: what to multiply them by; as many, or one for all that stand along the last
            dimension.
        global_batch_size: the size of the batch; by default that of the losses, times the number
            of replicas.

    Raises:
        ValueError: the losses are a scalar, or the weights do not go with them.
        RuntimeError: the size is not given, and the call is made across replicas.
    """
    loss = convert_to_tensor(per_example_loss)
    if loss.shape.ndims == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1, "
            f"received: {loss}"
        )
    dtype = loss.dtype
    if loss.shape.ndims is None:
        text = (
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1."
        )
        with control_dependencies([assert_rank_at_least(loss, 1, message=text)]):
            loss = identity(loss)
    if sample_weight is not None:
        wide = dtype if dtype is dtypes.float64 else dtypes.float32
        loss = cast(loss, wide)
        weight = _beside(cast(convert_to_tensor(sample_weight), wide), loss)
        loss = cast(loss * broadcast_weights(weight, loss), dtype)
    if global_batch_size is None:
        size = shape(loss)[0] * _replicas("compute_average_loss")
    else:
        size = convert_to_tensor(global_batch_size)
    mean: Tensor = reduce_sum(loss) / cast(size, dtype)
    return mean


def _beside(weight: Tensor, loss: Tensor) -> Tensor:
    """Weights with as many dimensions as the losses, if they have one more, or one fewer."""
    own, wanted = weight.shape.ndims, loss.shape.ndims
    if own == 0 or (own is not None and own == wanted):
        return weight
    if own is not None and wanted is not None:
        if own == wanted + 1:
            return squeeze(weight, [-1])
        return expand_dims(weight, -1) if own == wanted - 1 else weight
    count, more = rank(weight), rank(weight) - rank(loss)
    found: Tensor = cond(
        equal(count, 0),
        lambda: weight,
        lambda: cond(
            equal(more, 1),
            lambda: squeeze(weight, [-1]),
            lambda: cond(equal(more, -1), lambda: expand_dims(weight, -1), lambda: weight),
        ),
    )
    return found


@extensible
def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of regularization losses, divided by the number of replicas.

    Args:
        regularization_loss: the losses, a tensor.

    Raises:
        RuntimeError: the call is made across replicas.
    """
    return reduce_sum(regularization_loss) / _replicas("scale_regularization_loss")


def _replicas(function: str) -> int:
    """How many replicas share a batch: one without a strategy."""
    mode = replication.current()
    if mode is None:
        return 1
    if mode.replica is None:
        raise RuntimeError(
            f"You are calling `{function}` in cross replica context, while it was expected to be "
            "called in replica context."
        )
    return int(mode.strategy.num_replicas_in_sync)
