"""Losses of many classes that look at a few drawn ones: NCE and sampled softmax."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.partitioned import PartitionedVariable
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.candidate_sampling import compute_accidental_hits, log_uniform_candidate_sampler
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.fill import ones, ones_like, zeros, zeros_like
from opdock.ops.identity import stop_gradient
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import matmul
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.slicing import slice
from opdock.ops.support.nn_util import emit
from opdock.ops.xent import (
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)

# Public as tf.nn.
__all__: list[str] = []

_WORDS = {
    "weights": "[num_classes, dim], a tensor, or partitions of one in a list.",
    "biases": "[num_classes].",
    "labels": "integers [batch_size, num_true]: the target classes.",
    "inputs": "[batch_size, dim]: what the last hidden layer gives.",
    "num_sampled": "how many classes to draw for the batch.",
    "num_classes": "the number of classes.",
    "num_true": "how many target classes each example has.",
    "sampled_values": "what a candidate sampler gives; by default a log-uniform one draws.",
    "remove_accidental_hits": "whether drawn classes that are targets are left out.",
    "partition_strategy": '"mod" or "div": how rows are spread over partitions.',
    "seed": "op seed of the default sampler.",
    "name": "a name for the operation.",
    "returns": "[batch_size]: the loss of each example.",
}
"""What the losses take."""


def _sum_rows(x: Any) -> Any:
    """The sum of each row, as a product with ones: it runs on all cores."""
    columns = ones(stack([shape(x)[1], 1]), x.dtype)
    return reshape(matmul(x, columns), [-1])


def _without_hits(logits: Any, labels: Any, sampled: Any, num_sampled: Any, num_true: int) -> Any:
    """Logits of drawn classes that are as low as can be where the class is a target."""
    hits = compute_accidental_hits(labels, sampled, num_true=num_true)
    places = concat([reshape(hits[0], [-1, 1]), reshape(cast(hits[1], dtypes.int32), [-1, 1])], 1)
    whole = concat([shape(labels)[:1], expand_dims(num_sampled, 0)], 0)
    # A target may be named twice in an example; its place is still written once.
    empty = zeros(whole, logits.dtype)
    return logits + emit("TensorScatterUpdate", empty, places, cast(hits[2], logits.dtype))


def _true_logits(inputs: Any, weights: Any, biases: Any, num_true: int) -> Any:
    """[batch_size, num_true]: each example's own targets."""
    depth = shape(weights)[1:2]
    rows = reshape(weights, concat([[-1, num_true], depth], 0))
    dots = emit("Mul", expand_dims(inputs, 1), rows)
    dots = reshape(dots, concat([[-1], depth], 0))
    return reshape(_sum_rows(dots), [-1, num_true]) + reshape(biases, [-1, num_true])


def compute_sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, subtract_log_q: bool = True,
    remove_accidental_hits: bool = False, partition_strategy: str = "mod",
    name: str | None = None, seed: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The logits of the targets and of the drawn classes, and what they should be.

    Args:
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values: as
            `nce_loss` takes them.
        subtract_log_q: whether to correct for how often a class is drawn.
        remove_accidental_hits, partition_strategy, name, seed: as `sampled_softmax_loss` takes
            them.

    Returns:
        Two tensors [batch_size, num_true + num_sampled]; the second has 1 / num_true for each
        target and 0 for each drawn class.
    """
    if isinstance(weights, PartitionedVariable):
        weights = list(weights)
    if not isinstance(weights, list):
        weights = [weights]
    with name_scope(name, "compute_sampled_logits", [*weights, biases, inputs, labels]):
        labels, inputs = cast(labels, dtypes.int64), convert_to_tensor(inputs)
        flat = reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, True, num_classes, seed=seed
            )
        sampled, of_true, of_sampled = (stop_gradient(value) for value in sampled_values)
        sampled = cast(sampled, dtypes.int64)

        # One look-up for both, split afterwards.
        ids = concat([flat, sampled], 0)
        count = shape(flat)[0]
        rows: Any = cast(embedding_lookup(weights, ids, partition_strategy), inputs.dtype)
        shifts: Any = cast(embedding_lookup(biases, ids, partition_strategy), inputs.dtype)
        true_rows = slice(rows, [0, 0], stack([count, -1]))
        sampled_rows = slice(rows, stack([count, 0]), [-1, -1])
        true_logits = _true_logits(inputs, true_rows, slice(shifts, [0], shape(flat)), num_true)
        logits = matmul(inputs, sampled_rows, transpose_b=True)
        logits = logits + slice(shifts, shape(flat), [-1])
        if remove_accidental_hits:
            logits = _without_hits(logits, labels, sampled, num_sampled, num_true)
        if subtract_log_q:
            true_logits = true_logits - cast(emit("Log", of_true), true_logits.dtype)
            logits = logits - cast(emit("Log", of_sampled), logits.dtype)
        wanted = [ones_like(true_logits) / num_true, zeros_like(logits)]
        return concat([true_logits, logits], 1), concat(wanted, 1)


@extensible
@explained(_WORDS)
def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = False,
    partition_strategy: str = "mod", name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """Noise-contrastive estimation: targets are told from noise drawn (Gutmann, Hyvarinen 2010)."""
    logits, wanted = compute_sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
        remove_accidental_hits, partition_strategy, name,
    )  # fmt: skip
    return _sum_rows(  # type: ignore[no-any-return]
        sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits, name="sampled_losses")
    )


@extensible
@explained(_WORDS)
def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
    partition_strategy: str = "mod", name: str = "sampled_softmax_loss", seed: int | None = None,
) -> Tensor:  # fmt: skip
    """Softmax cross entropy over the targets and some drawn classes (Jean et al. 2014)."""
    logits, wanted = compute_sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
        remove_accidental_hits, partition_strategy, name, seed,
    )  # fmt: skip
    wanted = stop_gradient(wanted, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=wanted, logits=logits)


@explained(_WORDS, labels="integers [batch_size, 1]: the target class.")
def sampled_sparse_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: int,
    sampled_values: Any = None, remove_accidental_hits: bool = True,
    partition_strategy: str = "mod", name: str = "sampled_sparse_softmax_loss",
) -> Tensor:  # fmt: skip
    """The same with one target, whose logit comes first."""
    logits, _ = compute_sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, 1, sampled_values, True,
        remove_accidental_hits, partition_strategy, name,
    )  # fmt: skip
    first = zeros(shape(labels)[:1], dtypes.int64)
    return sparse_softmax_cross_entropy_with_logits(labels=first, logits=logits)
