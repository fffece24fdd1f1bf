"""Batches in which classes have the shares that are wanted: examples are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.array import expand_dims, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.check import (
    Assert,
    assert_equal,
    assert_less,
    assert_less_equal,
    assert_non_negative,
    assert_positive,
)
from opdock.ops.compare import equal, less, logical_or, not_equal
from opdock.ops.composed.check_static import assert_integer
from opdock.ops.control import cond, with_dependencies
from opdock.ops.elementary import is_nan
from opdock.ops.fill import zeros_like
from opdock.ops.gather import gather
from opdock.ops.identity import identity
from opdock.ops.printing import Print
from opdock.ops.random import random_uniform
from opdock.ops.reduce import reduce_all, reduce_max, reduce_sum
from opdock.ops.select import one_hot, where
from opdock.train.batching import batch, maybe_batch

__all__ = ["rejection_sample", "stratified_sample"]


def rejection_sample(
    tensors: Sequence[Any], accept_prob_fn: Callable[[list[Tensor]], Any], batch_size: int,
    queue_threads: int = 1, enqueue_many: bool = False, prebatch_capacity: int = 16,
    prebatch_threads: int = 1, runtime_checks: bool = False, name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """Batches of examples each of which is taken with a probability of its own.

    Args:
        tensors: the tensors of an example, or of many.
        accept_prob_fn: a function of the tensors of one example that gives its probability.
        batch_size: how many examples a batch has.
        queue_threads: how many threads fill the queue of batches.
        enqueue_many: whether the tensors are of many examples; they go through a queue then.
        prebatch_capacity: how many examples that queue holds.
        prebatch_threads: how many threads fill it.
        runtime_checks: whether to check that probabilities are such.
        name: of the variable scope.

    Returns:
        The tensors of a batch.

    Raises:
        ValueError: numbers of examples differ.
        InvalidArgumentError: when run with `runtime_checks`, a probability is none.
    """
    with variable_scope(name, "rejection_sample", tensors):
        found: list[Any] = [convert_to_tensor_or_indexed_slices(t) for t in tensors]
        if enqueue_many:
            _check_as_many(found, found[0])
            rows = batch(found, 1, prebatch_threads, prebatch_capacity, enqueue_many=True)
            found = [squeeze(x, [0]) for x in _listed(rows)]
        probability = accept_prob_fn(found)
        if runtime_checks:
            checks = [assert_less_equal(0.0, probability), assert_less_equal(probability, 1.0)]
            probability = identity(with_dependencies(checks, probability), name="prob_with_checks")
        keep = random_uniform([]) < probability
        return _listed(maybe_batch(found, keep, batch_size, num_threads=queue_threads))


def stratified_sample(
    tensors: Sequence[Any], labels: Any, target_probs: Any, batch_size: int,
    init_probs: Any = None, enqueue_many: bool = False, queue_capacity: int = 16,
    threads_per_queue: int = 1, name: str | None = None,
) -> tuple[list[Tensor], Tensor]:  # fmt: skip
    """Batches in which each class has the share that is wanted, by leaving examples out.

    Args:
        tensors: the tensors of an example, or of many.
        labels: the class of each, an integer.
        target_probs: the share of each class in batches.
        batch_size: how many examples a batch has.
        init_probs: the share of each class in the data; counted as they come when None.
        enqueue_many: whether the tensors are of many examples.
        queue_capacity: how many examples the first queue holds.
        threads_per_queue: how many threads fill each queue.
        name: a name for the operations.

    Returns:
        The tensors of a batch, and their labels.

    Raises:
        ValueError: numbers of examples, or of classes, differ or are not known.
        InvalidArgumentError: when run, shares do not add up to one, a label is no class, or a
            class is wanted that the data does not have.
    """
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        found: list[Any] = [convert_to_tensor_or_indexed_slices(t) for t in tensors]
        labels = convert_to_tensor(labels)
        wanted = convert_to_tensor(target_probs, dtypes.float32)
        if not enqueue_many:
            found = [expand_dims(t, 0) for t in found]
            labels = expand_dims(labels, 0)
        if init_probs is None:
            wanted.shape.assert_is_fully_defined()
            there = _estimate_data_distribution(labels, wanted.shape.num_elements())
        else:
            there = convert_to_tensor(init_probs, dtypes.float32)
        found, labels, (there, wanted) = _verify_input(found, labels, [there, wanted])
        possible = reduce_all(logical_or(not_equal(there, 0), equal(wanted, 0)))
        message = (
            "All classes with zero initial probability must also have zero target probability: "
        )
        there = with_dependencies([Assert(possible, [message, there, wanted])], there)
        chances = _told_if_slow(_acceptance(there, wanted), there)
        rows = batch([*found, labels], 1, threads_per_queue, queue_capacity, enqueue_many=True)
        *values, label = [squeeze(x, [0]) for x in rows]
        keep = random_uniform([]) < gather(chances, label)
        *batched, of_batch = maybe_batch(
            [*values, label], keep, batch_size, num_threads=threads_per_queue
        )
        return batched, of_batch


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _estimate_data_distribution(
    labels: Any, num_classes: Any, smoothing_constant: int = 10
) -> Tensor:
    """The share of each class so far, as if each had come so often before."""
    if smoothing_constant <= 0:
        raise ValueError("smoothing_constant must be nonzero.")
    seen = Variable(
        [smoothing_constant] * num_classes, trainable=False, name="class_count",
        dtype=dtypes.int64,
    )  # fmt: skip
    now: Any = seen.assign_add(reduce_sum(one_hot(labels, num_classes, dtype=dtypes.int64), 0))
    now = now + 0  # what others count meanwhile does not change it
    share: Tensor = cast(now / reduce_sum(now), dtypes.float32)
    return share


def _verify_input(
    tensor_list: list[Any], labels: Any, probs_list: list[Any]
) -> tuple[list[Any], Any, list[Any]]:
    """All of them, with checks that run before they are used."""
    checked = []
    for shares in probs_list:
        shares.shape.assert_is_fully_defined()
        shares.shape.assert_has_rank(1)
        total, slack = reduce_sum(shares), 1e-6
        checks = [
            assert_non_negative(shares),
            assert_less(total, 1.0 + slack),
            assert_less(1.0 - slack, total),
        ]
        checked.append(with_dependencies(checks, shares))
    classes = checked[0].shape.num_elements()
    if any(shares.shape.num_elements() != classes for shares in checked):
        raise ValueError("Probability parameters must have the same length.")
    labels.shape.assert_has_rank(1)
    _check_as_many(tensor_list, labels)
    count = shape(labels)[0]
    some = assert_positive(count)
    labels = with_dependencies([some], labels)
    found = [with_dependencies([some, assert_equal(shape(x)[0], count)], x) for x in tensor_list]
    checks = [
        assert_integer(labels),
        assert_non_negative(labels),
        assert_less(labels, cast(classes, labels.dtype)),
    ]
    return found, with_dependencies(checks, labels), checked


def _check_as_many(tensors: list[Any], example: Any) -> None:
    count = shapes.with_rank_at_least(example.shape.as_list(), 1) if example.shape.ndims else None
    for tensor in tensors:
        rows = tensor.shape.with_rank_at_least(1)
        if count is not None and rows.ndims is not None:
            rows.dims[0].assert_is_compatible_with(count[0])


def _acceptance(there: Tensor, wanted: Tensor) -> Tensor:
    """The probability to take an example of each class: the rarest, for what is wanted, always."""
    ratio = wanted / there
    ratio = where(is_nan(ratio), zeros_like(ratio), ratio)
    return ratio / reduce_max(ratio)


def _told_if_slow(chances: Tensor, there: Tensor) -> Tensor:
    rejected = reduce_sum((1 - chances) * there)
    found: Tensor = cond(
        less(rejected, 0.5),
        lambda: identity(chances),
        lambda: Print(
            chances, [chances], message="Proportion of examples rejected by sampler is high.",
            first_n=10,
        ),
    )  # fmt: skip
    return found
