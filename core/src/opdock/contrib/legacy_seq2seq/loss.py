"""Losses of lists of logits, one a step, and models of several lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.reduce import reduce_sum
from opdock.ops.sums import add_n
from opdock.ops.xent import sparse_softmax_cross_entropy_with_logits

__all__ = ["model_with_buckets", "sequence_loss", "sequence_loss_by_example"]

Loss = Callable[..., Any]


def sequence_loss_by_example(
    logits: Sequence[Any], targets: Sequence[Any], weights: Sequence[Any],
    average_across_timesteps: bool = True, softmax_loss_function: Loss | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy of each example.

    Args:
        logits: a list of tensors [batch, classes], one a step.
        targets: a list of int vectors [batch].
        weights: a list of float vectors [batch].
        average_across_timesteps: whether to divide by the weights.
        softmax_loss_function: takes `labels` and `logits`; the cross entropy by default.
        name: a name for the operations.

    Returns:
        A vector [batch].

    Raises:
        ValueError: the lists differ in length.
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                loss = sparse_softmax_cross_entropy_with_logits(
                    labels=reshape(target, [-1]), logits=logit
                )
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total: Tensor = add_n(losses)
        # Examples of weight 0 have a loss of 0, and no infinity.
        return total / (add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any], targets: Sequence[Any], weights: Sequence[Any],
    average_across_timesteps: bool = True, average_across_batch: bool = True,
    softmax_loss_function: Loss | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The sum of `sequence_loss_by_example` over the batch, or its mean.

    Args:
        logits: a list of tensors [batch, classes], one a step.
        targets: a list of int vectors [batch].
        weights: a list of float vectors [batch].
        average_across_timesteps: whether to divide by the weights.
        average_across_batch: whether to divide by the size of the batch.
        softmax_loss_function: takes `labels` and `logits`; the cross entropy by default.
        name: a name for the operations.

    Returns:
        A scalar.

    Raises:
        ValueError: the lists differ in length.
    """
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        cost = reduce_sum(
            sequence_loss_by_example(
                logits, targets, weights, average_across_timesteps, softmax_loss_function
            )
        )
        return cost / cast(shape(targets[0])[0], cost.dtype) if average_across_batch else cost


def model_with_buckets(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], targets: Sequence[Any],
    weights: Sequence[Any], buckets: Sequence[tuple[int, int]], seq2seq: Callable[..., Any],
    softmax_loss_function: Loss | None = None, per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Makes a model once for each of several lengths, all with the same variables.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: lists with a tensor a step.
        buckets: pairs of the lengths of inputs and outputs, the longest last.
        seq2seq: takes the inputs of encoder and decoder, and gives outputs and a state.
        softmax_loss_function: takes `labels` and `logits`; the cross entropy by default.
        per_example_loss: whether losses are vectors [batch].
        name: a name for the operations.

    Returns:
        The outputs and the losses of each length.

    Raises:
        ValueError: a list is shorter than the last bucket.
    """
    longest_in, longest_out = buckets[-1]
    for what, given, wanted in (
        ("encoder_inputs", encoder_inputs, longest_in), ("targets", targets, longest_out),
        ("weights", weights, longest_out),
    ):  # fmt: skip
        if len(given) < wanted:
            raise ValueError(
                f"Length of {what} ({len(given)}) must be at least that of last bucket ({wanted})."
            )
    loss_of = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    everything = [*encoder_inputs, *decoder_inputs, *targets, *weights]
    with name_scope(name, "model_with_buckets", everything):
        for i, (inner, outer) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if i else None):
                made, _ = seq2seq(encoder_inputs[:inner], decoder_inputs[:outer])
                outputs.append(made)
                losses.append(
                    loss_of(
                        made, targets[:outer], weights[:outer],
                        softmax_loss_function=softmax_loss_function,
                    )
                )  # fmt: skip
    return outputs, losses
