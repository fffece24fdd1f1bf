"""The loss of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.division import div_no_nan
from opdock.ops.composed.reduce_stats import count_nonzero
from opdock.ops.fill import ones
from opdock.ops.reduce import reduce_sum
from opdock.ops.xent import sparse_softmax_cross_entropy_with_logits

__all__ = ["SequenceLoss", "sequence_loss"]


def sequence_loss(
    logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
    average_across_batch: bool = True, sum_over_timesteps: bool = False,
    sum_over_batch: bool = False, softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy of a sequence of logits.

    Args:
        logits: a float tensor [batch, time, classes].
        targets: an int tensor [batch, time] of true classes.
        weights: a float tensor [batch, time]; 0 leaves a step out.
        average_across_timesteps, average_across_batch: whether to divide by the weights of these.
        sum_over_timesteps, sum_over_batch: whether to divide by how many of these have a weight.
        softmax_loss_function: takes `labels` and `logits`; the cross entropy by default.
        name: a name for the operations.

    Returns:
        A scalar, [time], [batch] or [batch, time], as what was averaged or summed is gone.

    Raises:
        ValueError: a rank does not fit, or the same is to be averaged and summed.
    """
    for what, value, rank in (
        ("Logits must be a [batch_size x sequence_length x logits]", logits, 3),
        ("Targets must be a [batch_size x sequence_length]", targets, 2),
        ("Weights must be a [batch_size x sequence_length]", weights, 2),
    ):
        if len(value.shape) != rank:
            raise ValueError(f"{what} tensor")
    for what, mean, total in (
        ("timesteps", average_across_timesteps, sum_over_timesteps),
        ("batch", average_across_batch, sum_over_batch),
    ):
        if mean and total:
            raise ValueError(
                f"average_across_{what} and sum_over_{what} cannot be set to True at same time."
            )
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        loss_of = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        flat = reshape(logits, [-1, shape(logits)[2]])
        losses = loss_of(labels=reshape(targets, [-1]), logits=flat) * reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return div_no_nan(reduce_sum(losses), reduce_sum(weights))
        if sum_over_timesteps and sum_over_batch:
            return div_no_nan(reduce_sum(losses), cast(count_nonzero(weights), losses.dtype))
        losses = reshape(losses, shape(logits)[0:2])
        if average_across_timesteps or average_across_batch:
            axis = [0] if average_across_batch else [1]
            return div_no_nan(reduce_sum(losses, axis), reduce_sum(weights, axis))
        if sum_over_timesteps or sum_over_batch:
            axis = [0] if sum_over_batch else [1]
            count = cast(count_nonzero(weights, axis=axis), losses.dtype)
            return div_no_nan(reduce_sum(losses, axis), count)
        return losses


class SequenceLoss:
    """`sequence_loss` as a function of true classes and logits, in the order of Keras.

    Args:
        average_across_timesteps, average_across_batch, sum_over_timesteps, sum_over_batch,
            softmax_loss_function, name: see `sequence_loss`.
    """

    def __init__(
        self, average_across_timesteps: bool = False, average_across_batch: bool = False,
        sum_over_timesteps: bool = True, sum_over_batch: bool = True,
        softmax_loss_function: Callable[..., Any] | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.average_across_timesteps = average_across_timesteps
        self.average_across_batch = average_across_batch
        self.sum_over_timesteps, self.sum_over_batch = sum_over_timesteps, sum_over_batch
        self.softmax_loss_function, self.name = softmax_loss_function, name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The loss.

        Args:
            y_true: an int tensor [batch, time] of true classes.
            y_pred: a float tensor [batch, time, classes] of logits.
            sample_weight: a float tensor [batch, time]; ones by default.

        Raises:
            ValueError: see `sequence_loss`.
        """
        logits = convert_to_tensor(y_pred)
        if sample_weight is None:
            sample_weight = ones(shape(y_true), logits.dtype)
            sample_weight.set_shape(convert_to_tensor(y_true).shape)
        return sequence_loss(
            logits, convert_to_tensor(y_true), convert_to_tensor(sample_weight),
            self.average_across_timesteps, self.average_across_batch, self.sum_over_timesteps,
            self.sum_over_batch, self.softmax_loss_function, self.name,
        )  # fmt: skip

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """The loss without weights."""
        return self(y_true, y_pred)
