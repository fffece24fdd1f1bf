"""Losses of examples as one number, however many replicas share a batch."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.reduce import reduce_sum

__all__ = ["compute_average_loss", "scale_regularization_loss"]


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The sum of the losses of examples, divided by the size of the batch.

    Args:
        per_example_loss: losses, at least [batch].
        sample_weight: what to multiply them by, of as many dimensions or fewer.
        global_batch_size: the size of the batch; that of the losses if not given.

    Raises:
        ValueError: the losses are a scalar.
    """
    loss = convert_to_tensor(per_example_loss)
    if loss.shape.ndims == 0:
        raise ValueError(f"Invalid value passed for `per_example_loss`. Expected a tensor with at "
                         f"least rank 1, got: {loss}")  # fmt: skip
    dtype = loss.dtype
    if sample_weight is not None:
        weight = cast(convert_to_tensor(sample_weight), dtype)
        for _ in range((loss.shape.ndims or 0) - (weight.shape.ndims or 0)):
            if weight.shape.ndims == 0:
                break
            weight = expand_dims(weight, -1)
        loss = loss * weight
    size = shape(loss)[0] if global_batch_size is None else convert_to_tensor(global_batch_size)
    mean: Tensor = reduce_sum(loss) / cast(size, dtype)
    return mean


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of regularization losses, divided by the number of replicas, which is one."""
    return reduce_sum(regularization_loss)
