"""Losses over drawn classes, and cross entropies whose arguments are the other way round."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.partitioned import PartitionedVariable
from opdock.ops.array import reshape
from opdock.ops.candidate_sampling import learned_unigram_candidate_sampler
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.composed.reduce_stats import reduce_logsumexp
from opdock.ops.composed.sampled_losses import sampled_softmax_loss
from opdock.ops.gather import gather
from opdock.ops.identity import stop_gradient
from opdock.ops.linalg import matmul
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.sorting import top_k
from opdock.ops.xent import (
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)

__all__ = [
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "rank_sampled_softmax_loss",
]


def rank_sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_resampled: int,
    num_classes: int, num_true: int, sampled_values: Any, resampling_temperature: Any,
    remove_accidental_hits: bool, partition_strategy: str, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Sampled softmax over those of the drawn classes that come nearest to the examples.

    Args:
        weights: [classes, dim], or partitions of it.
        biases: [classes], likewise.
        labels: integers [batch, num_true].
        inputs: [batch, dim].
        num_sampled: how many classes are drawn.
        num_resampled: how many of them are kept: those whose logits, summed up over the batch, are
            the greatest.
        num_classes: the number of classes.
        num_true: how many targets each example has.
        sampled_values: what a candidate sampler gives; a learned unigram one draws when None.
        resampling_temperature: what logits are divided by before they are summed up: the lower,
            the more the nearest example counts.
        remove_accidental_hits: whether drawn classes that are targets are left out.
        partition_strategy: "div" or "mod".
        name: a name for the operations.

    Returns:
        A tensor [batch].

    Raises:
        ValueError: there are not more classes than drawn ones and not more of them than kept ones,
            or there is no such strategy.
    """
    if num_sampled > num_classes:
        raise ValueError(
            f"num_sampled ({num_sampled}) cannot be greater than num_classes ({num_classes})"
        )
    if num_sampled <= num_resampled:
        raise ValueError(
            f"num_resampled ({num_resampled}) must be less than num_sampled ({num_sampled})"
        )
    if partition_strategy not in ("div", "mod"):
        raise ValueError(f"unsupported partition_strategy ({partition_strategy})")
    with name_scope(name, "rank_sampled_softmax_loss") as scope:
        inputs = convert_to_tensor(inputs)
        if not sampled_values:
            sampled_values = learned_unigram_candidate_sampler(
                labels, num_true, num_sampled, unique=True, range_max=num_classes
            )
        sampled, of_true, of_sampled = (stop_gradient(value) for value in sampled_values)
        sampled = cast(sampled, dtypes.int64)
        rows, shifts = (
            embedding_lookup(
                list(part) if isinstance(part, PartitionedVariable) else part,
                sampled,
                partition_strategy,
            )
            for part in (weights, biases)
        )
        logits = matmul(rows, inputs / resampling_temperature, transpose_b=True)
        nearness = reduce_logsumexp(logits, axis=1)
        nearness += reshape(shifts, [-1]) / resampling_temperature
        kept = top_k(nearness, k=num_resampled, sorted=False)[1]
        return sampled_softmax_loss(
            weights, biases, labels, inputs, num_resampled, num_classes, num_true,
            (gather(sampled, kept), of_true, gather(of_sampled, kept)), remove_accidental_hits,
            partition_strategy, scope,
        )  # fmt: skip


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits` as its arguments were before TensorFlow 1."""
    return softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` as it was before TensorFlow 1."""
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Tensor:
    """`tf.nn.sigmoid_cross_entropy_with_logits` as it was before TensorFlow 1."""
    return sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)
