"""`tf.train.batch`, `shuffle_batch` and their like: tensors into queues, batches out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor, convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope, refuse_eagerly
from opdock.layers.utils import smart_cond
from opdock.ops.composed.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from opdock.shapes import TensorShape
from opdock.train.queue_runner import NOT_EAGERLY, QueueRunner, add_queue_runner

__all__ = [
    "batch", "batch_join", "maybe_batch", "maybe_batch_join", "maybe_shuffle_batch",
    "maybe_shuffle_batch_join", "shuffle_batch", "shuffle_batch_join",
]  # fmt: skip

_ARGUMENTS = """
    Args:
        {what}
        {keep}batch_size: how many rows a batch has.
        {more}enqueue_many: whether the tensors are batches themselves, whose rows are enqueued.
        shapes: the shapes of the rows; inferred by default.
        {pad}allow_smaller_final_batch: whether what is left at the end is a batch too.
        shared_name: nodes with one such name share one queue.
        name: a name for the operations.

    Returns:
        The batches, in the structure of one set of tensors.

    Raises:
        ValueError: there are no tensors, or their shapes are not known or do not fit.
        TypeError: sets of tensors differ in type.
"""
_ONE = "tensors: the tensors of one row, a list or a dictionary."
_JOINED = (
    "tensors_list: a list of such lists or dictionaries; a thread for each runs what computes it."
)
_KEEP = (
    "keep_input: whether the tensors are taken, a bool tensor; one a row with `enqueue_many`."
    "\n        "
)
_THREADS = "num_threads: how many threads enqueue.\n        "
_CAPACITY = "capacity: how many rows the queue holds.\n        "
_SHUFFLE = (
    "capacity: how many rows the queue holds.\n        "
    "min_after_dequeue: how many are left in it, which is how well they are mixed.\n        "
)
_SEED = "seed: for the order.\n        "
_PAD = "dynamic_pad: whether rows may differ in shape and are padded with zeros.\n        "


def _explained(what: str, keep: str, more: str, pad: str) -> Callable[[Any], Any]:
    """Completes a docstring, in which eight functions say the same of the same arguments."""

    def complete(function: Any) -> Any:
        arguments = _ARGUMENTS.format(what=what, keep=keep, more=more, pad=pad)
        function.__doc__ = f"{function.__doc__}\n{arguments}"
        return function

    return complete


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    """What all eight functions ask for."""

    batch_size: Any
    keep_input: Any
    capacity: int
    enqueue_many: bool
    shapes: Any
    smaller: bool
    shared_name: str | None
    name: str | None


# ---------------------------------------------------------------- the work
def _batches(
    default: str, sets: Sequence[Any], options: _Options,
    make: Callable[[list[Any], list[Any]], QueueBase],
    fill: Callable[[Tensor], float | Tensor], tag: str, threads: int | None = None,
) -> Any:  # fmt: skip
    """Enqueues sets of tensors, and dequeues batches of them.

    Args:
        default: the name of the operations without another.
        sets: sets of tensors.
        options: what the user asked for.
        make: makes the queue for types and shapes.
        fill: how full it is, of its size.
        tag: what the summary of that is called.
        threads: how many enqueue the one set; by default there is one a set.
    """
    refuse_eagerly(NOT_EAGERLY)
    lists = as_lists(sets)
    everything = [t for tensors in lists for t in tensors]
    with name_scope(options.name, default, [*everything, options.keep_input]) as scope:
        sparse = sparse_parts(lists, options.enqueue_many)
        lists = [checked(tensors, options.enqueue_many) for tensors in lists]
        keep = checked_keep(options.keep_input, options.enqueue_many)
        types = types_of(lists)
        shapes = shapes_of(lists, options.shapes, options.enqueue_many)
        queue = make(types, shapes)
        put = queue.enqueue_many if options.enqueue_many else queue.enqueue
        ops = [_enqueue(put, tensors, keep) for tensors in lists] * (threads or 1)
        add_queue_runner(QueueRunner(queue, ops))
        tf.summary.scalar(tag, fill(queue.size()))
        take = queue.dequeue_up_to if options.smaller else queue.dequeue_many
        found = take(options.batch_size, name=scope)
        return like(sets[0], restored(found, sparse))


def as_lists(sets: Sequence[Any]) -> list[list[Any]]:
    """Sets of tensors as lists, dictionaries in the order of their keys."""
    if not sets:
        raise ValueError("Expected at least one set of tensors")
    if not isinstance(sets[0], dict):
        return [list(s) for s in sets]
    if any(set(s) != set(sets[0]) for s in sets):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [[s[k] for k in sorted(s, key=str)] for s in sets]


def like(example: Any, found: Any) -> Any:
    """What was dequeued, in the structure of a set of tensors."""
    if not isinstance(example, dict):
        return found
    values = [found] if len(example) == 1 else found
    return dict(zip(sorted(example, key=str), values, strict=True))


def checked(tensors: list[Any], enqueue_many: bool) -> list[Tensor]:
    """The tensors that go into the queue: sparse ones as bytes, three strings a row."""
    if not tensors:
        raise ValueError("Expected at least one tensor in batch().")
    store = tf.serialize_many_sparse if enqueue_many else tf.serialize_sparse
    return [
        store(t) if isinstance(t, SparseTensor) else convert_to_tensor_or_indexed_slices(t)
        for t in tensors
    ]


def sparse_parts(
    lists: Sequence[Sequence[Any]], enqueue_many: bool
) -> list[tuple[Any, Any] | None]:
    """Of each part of a row whether it is sparse: then its type, and the rank of a batch of it."""

    def of(part: Any) -> tuple[Any, Any] | None:
        if not isinstance(part, SparseTensor):
            return None
        (rank,) = part.dense_shape.get_shape().with_rank(1).as_list()
        return part.dtype, None if rank is None else rank + (not enqueue_many)

    first, *others = ([of(part) for part in parts] for parts in lists)
    for other, parts in zip(others, lists[1:], strict=True):
        if other != first:
            raise ValueError(f"Inconsistent SparseTensors list: {lists[0]} vs. {parts}")
    return first


def restored(found: Any, sparse: Sequence[tuple[Any, Any] | None]) -> Any:
    if not any(sparse):
        return found
    parts = found if isinstance(found, list) else [found]
    made = [
        part if kind is None else tf.deserialize_many_sparse(part, *kind)
        for part, kind in zip(parts, sparse, strict=True)
    ]
    return made if isinstance(found, list) else made[0]


def checked_keep(keep_input: Any, enqueue_many: bool) -> Tensor:
    """`keep_input` as a tensor of a rank that fits."""
    keep = convert_to_tensor(keep_input)
    rank = keep.get_shape().ndims
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and rank == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def types_of(lists: Sequence[Sequence[Tensor]]) -> list[Any]:
    """The types of a row's parts, on which all sets agree."""
    first, *others = ([t.dtype for t in tensors] for tensors in lists)
    for other in others:
        if other != first:
            texts = (", ".join(t.name for t in types) for types in (first, other))
            raise TypeError("Expected types to be consistent: {} vs. {}.".format(*texts))
    return first


def shapes_of(lists: Sequence[Sequence[Tensor]], given: Any, enqueue_many: bool) -> list[Any]:
    """The shape of a row's parts, as far as all sets agree on it."""
    if given is not None:
        return list(given)
    for tensor in (t for tensors in lists for t in tensors):
        if tensor.get_shape().ndims is None:
            raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
    found = []
    for parts in zip(*lists, strict=True):
        shapes = [t.get_shape() for t in parts]
        if enqueue_many:
            shapes = [s.with_rank_at_least(1)[1:] for s in shapes]
        merged = shapes[0]
        for shape in shapes[1:]:
            merged.merge_with(shape)
        found.append(merged.as_list())
    return found


def _enqueue(put: Callable[[Any], Any], tensors: list[Tensor], keep: Tensor) -> Any:
    if keep.get_shape().ndims == 1:
        chosen = tf.cast(keep, dtypes.int32)
        return put([tf.dynamic_partition(t, chosen, 2)[1] for t in tensors])
    return smart_cond(keep, lambda: put(tensors), tf.no_op)


def _in_order(
    default: str, sets: Sequence[Any], options: _Options, pad: bool, threads: int | None
) -> Any:
    capacity = options.capacity

    def make(types: list[Any], shapes: list[Any]) -> QueueBase:
        kind = PaddingFIFOQueue if pad else FIFOQueue
        known = [TensorShape(s) for s in shapes]
        return kind(capacity, types, known, shared_name=options.shared_name)

    return _batches(
        default, sets, options, make, lambda n: tf.cast(n, dtypes.float32) * (1 / capacity),
        f"fraction_of_{capacity}_full", threads,
    )  # fmt: skip


def _mixed(
    default: str, sets: Sequence[Any], options: _Options, left: int, seed: int | None,
    threads: int | None,
) -> Any:  # fmt: skip
    capacity = options.capacity
    if capacity <= left:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {left}.")
    room = capacity - left

    def make(types: list[Any], shapes: list[Any]) -> QueueBase:
        known = [TensorShape(s) for s in shapes]
        return RandomShuffleQueue(
            capacity, left, types, known, seed=seed, shared_name=options.shared_name
        )

    return _batches(
        default, sets, options, make,
        lambda n: tf.cast(tf.maximum(0, n - left), dtypes.float32) * (1 / room),
        f"fraction_over_{left}_of_{room}_full", threads,
    )  # fmt: skip


# ---------------------------------------------------------------- in order
@_explained(_ONE, "", _THREADS + _CAPACITY, _PAD)
def batch(
    tensors: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of tensors, in the order in which they are computed."""
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@_explained(_ONE, _KEEP, _THREADS + _CAPACITY, _PAD)
def maybe_batch(
    tensors: Any, keep_input: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of those tensors that are to be kept, in the order in which they are computed."""
    options = _Options(
        batch_size=batch_size, keep_input=keep_input, capacity=capacity,
        enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
        shared_name=shared_name, name=name,
    )  # fmt: skip
    return _in_order("batch", [tensors], options, dynamic_pad, num_threads)


@_explained(_JOINED, "", _CAPACITY, _PAD)
def batch_join(
    tensors_list: Any, batch_size: Any, capacity: int = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of several sets of tensors, as threads compute them."""
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@_explained(_JOINED, _KEEP, _CAPACITY, _PAD)
def maybe_batch_join(
    tensors_list: Any, keep_input: Any, batch_size: Any, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of those sets of tensors that are to be kept, as threads compute them."""
    options = _Options(
        batch_size=batch_size, keep_input=keep_input, capacity=capacity,
        enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
        shared_name=shared_name, name=name,
    )  # fmt: skip
    return _in_order("batch_join", tensors_list, options, dynamic_pad, None)


# ---------------------------------------------------------------- mixed
@_explained(_ONE, "", _SHUFFLE + _THREADS + _SEED, "")
def shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of tensors in random order."""
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many,
        shapes, allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@_explained(_ONE, "", _SHUFFLE + _KEEP + _THREADS + _SEED, "")
def maybe_shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, keep_input: Any,
    num_threads: int = 1, seed: int | None = None, enqueue_many: bool = False,
    shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of those tensors that are to be kept, in random order."""
    options = _Options(
        batch_size=batch_size, keep_input=keep_input, capacity=capacity,
        enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
        shared_name=shared_name, name=name,
    )  # fmt: skip
    return _mixed("shuffle_batch", [tensors], options, min_after_dequeue, seed, num_threads)


@_explained(_JOINED, "", _SHUFFLE + _SEED, "")
def shuffle_batch_join(
    tensors_list: Any, batch_size: Any, capacity: int, min_after_dequeue: int,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of several sets of tensors in random order."""
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@_explained(_JOINED, "", _SHUFFLE + _KEEP + _SEED, "")
def maybe_shuffle_batch_join(
    tensors_list: Any, batch_size: Any, capacity: int, min_after_dequeue: int, keep_input: Any,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of those sets of tensors that are to be kept, in random order."""
    options = _Options(
        batch_size=batch_size, keep_input=keep_input, capacity=capacity,
        enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
        shared_name=shared_name, name=name,
    )  # fmt: skip
    return _mixed("shuffle_batch_join", tensors_list, options, min_after_dequeue, seed, None)
