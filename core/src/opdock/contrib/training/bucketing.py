"""Batches of examples of one kind, such as sentences of about one length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import opdock as tf
from opdock import dtypes, errors
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.utils import smart_cond
from opdock.ops.composed.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from opdock.shapes import TensorShape
from opdock.train import batching
from opdock.train.queue_runner import QueueRunner, add_queue_runner

__all__ = ["bucket", "bucket_by_sequence_length"]

_ENDED = (errors.OutOfRangeError, errors.CancelledError)


def bucket(
    tensors: Any, which_bucket: Any, batch_size: Any, num_buckets: int, num_threads: int = 1,
    capacity: int = 32, bucket_capacities: Sequence[int] | None = None, shapes: Any = None,
    dynamic_pad: bool = False, allow_smaller_final_batch: bool = False, keep_input: Any = True,
    shared_name: str | None = None, name: str | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Batches of examples that belong to one bucket.

    Each bucket has a queue of examples; full batches of all of them go into one queue, from which
    a step takes the next. Queue runners, collected in the graph, do both.

    Args:
        tensors: the tensors of one example, a list or a dictionary.
        which_bucket: an int32 scalar, the example's bucket.
        batch_size: how many examples a batch has, or a list of that by bucket.
        num_buckets: how many buckets there are.
        num_threads: how many threads enqueue examples.
        capacity: how many batches may wait, and how many examples in a bucket.
        bucket_capacities: how many examples in each bucket.
        shapes: the shapes of an example's tensors; inferred by default.
        dynamic_pad: whether examples may differ in shape and are padded with zeros.
        allow_smaller_final_batch: whether what is left at the end are batches too.
        keep_input: a bool scalar, whether the example is taken.
        shared_name: sessions of one such name share the queues.
        name: a name for the operations.

    Returns:
        The bucket of the batch, an int32 scalar, and the batch in the structure of `tensors`.

    Raises:
        ValueError: there are no tensors, shapes are not known, or a list does not have as many
            elements as there are buckets.
    """
    one_size = not isinstance(batch_size, list | tuple)
    sizes = [batch_size] * num_buckets if one_size else list(batch_size)
    if len(sizes) != num_buckets:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    rooms = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(rooms) != num_buckets:
        raise ValueError(
            f"The list bucket_capacities ({bucket_capacities}) must have exactly num_buckets "
            f"({num_buckets}) elements."
        )
    lists = batching.as_lists([tensors])
    with name_scope(name, "bucket", lists[0]):
        sparse = batching.sparse_parts(lists, False)
        parts = batching.checked(lists[0], False)
        keep = batching.checked_keep(keep_input, False)
        sizes = [_known(convert_to_tensor(s, dtypes.int32, name="batch_size")) for s in sizes]
        types = batching.types_of([parts])
        known = [TensorShape(s) for s in batching.shapes_of([parts], shapes, False)]
        which = convert_to_tensor(which_bucket, dtypes.int32, name="which_bucket")
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues = [
            kind(room, types, known, name=f"bucket_queue_{i}",
                 shared_name=None if shared_name is None else f"{shared_name}_{i}")
            for i, room in enumerate(rooms)
        ]  # fmt: skip
        fixed = sizes[0] if one_size and not allow_smaller_final_batch else None
        rows = [TensorShape([fixed if isinstance(fixed, int) else None]) for _ in known]
        top = PaddingFIFOQueue(
            capacity, [dtypes.int32, *types],
            [TensorShape([]), *(r.concatenate(s) for r, s in zip(rows, known, strict=True))],
            shared_name=shared_name, name="top_queue",
        )  # fmt: skip
        put = smart_cond(keep, lambda: _put(queues, which, parts), tf.no_op)
        _run(queues, top, [put] * num_threads, sizes, allow_smaller_final_batch)
        for queue in queues:
            tf.summary.scalar(f"bucket/{queue.name}/size", tf.cast(top.size(), dtypes.float32))
        full = tf.cast(top.size(), dtypes.float32) * (1 / capacity)
        tf.summary.scalar(f"bucket/{top.name}/fraction_of_{capacity}_full", full)
        found, *batch = top.dequeue(name="dequeue_top")
        batch = batching.restored(batch[0] if len(batch) == 1 else batch, sparse)
        return found, batching.like(tensors, batch)


def bucket_by_sequence_length(
    input_length: Any, tensors: Any, batch_size: Any, bucket_boundaries: Sequence[int],
    num_threads: int = 1, capacity: int = 32, bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    keep_input: Any = True, shared_name: str | None = None, name: str | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Batches of examples of about one length.

    Args:
        input_length: an int32 scalar, the example's length.
        tensors: the tensors of one example, a list or a dictionary.
        batch_size: how many examples a batch has, or a list of that by bucket.
        bucket_boundaries: rising lengths at which the next bucket begins; there is one bucket more.
        num_threads, capacity, bucket_capacities, shapes, dynamic_pad, allow_smaller_final_batch,
            keep_input, shared_name, name: see `bucket`.

    Returns:
        The lengths of the batch's examples, and the batch in the structure of `tensors`.

    Raises:
        TypeError: the boundaries are no list of integers.
        ValueError: there are none, or they do not rise; see `bucket` as well.
    """
    (parts,) = batching.as_lists([tensors])
    _check_boundaries(bucket_boundaries)
    with name_scope(name, "bucket_by_sequence_length", [input_length, *parts]):
        length = convert_to_tensor(input_length, dtypes.int32, name="input_length")
        passed = tf.greater_equal(length, convert_to_tensor(list(bucket_boundaries), dtypes.int32))
        which = tf.reduce_sum(tf.cast(passed, dtypes.int32))
        if shapes is not None:
            shapes = [TensorShape([]), *shapes]
        _, (lengths, *batch) = bucket(
            [length, *parts], which, batch_size, len(bucket_boundaries) + 1, num_threads, capacity,
            bucket_capacities, shapes, dynamic_pad, allow_smaller_final_batch, keep_input,
            shared_name,
        )  # fmt: skip
        one = isinstance(tensors, dict) and len(batch) == 1
        return lengths, batching.like(tensors, batch[0] if one else batch)


def _check_boundaries(boundaries: Any) -> None:
    if not isinstance(boundaries, list | tuple):
        raise TypeError(f"bucket_boundaries must be a list or tuple, but received: {boundaries}")
    if not boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for low, high in pairwise(boundaries):
        if not isinstance(low, int) or not isinstance(high, int):
            raise TypeError(f"bucket boundaries must be integers, but saw: {low} and {high}")
        if low >= high:
            raise ValueError(
                f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}"
            )


def _known(size: Tensor) -> Any:
    """A number where it is known when the graph is built, else the tensor."""
    found = constant_value(size)
    return size if found is None else int(found)


def _put(queues: Sequence[QueueBase], which: Tensor, parts: Sequence[Tensor]) -> Any:
    """An operation that puts an example into its bucket."""

    def into(queue: QueueBase, number: int) -> Any:
        return tf.cond(tf.equal(which, number), lambda: queue.enqueue(parts), tf.no_op)

    return tf.group(*(into(q, i) for i, q in enumerate(queues)), name="group_enqueues")


def _run(
    queues: Sequence[QueueBase], top: QueueBase, puts: Sequence[Any], sizes: Sequence[Any],
    smaller: bool,
) -> None:  # fmt: skip
    """Collects the runners of both sides; each ends when the other's queues are closed."""
    moves = []
    for i, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        found = take(size, name=f"read_bucket_{i}")
        rows = list(found) if isinstance(found, list | tuple) else [found]
        moves.append(top.enqueue([tf.constant(i), *rows], name=f"enqueue_from_bucket_{i}"))
    add_queue_runner(
        QueueRunner(
            queues[0],
            moves,
            close_op=top.close(),
            cancel_op=top.close(cancel_pending_enqueues=True),
            queue_closed_exception_types=_ENDED,
        )
    )
    add_queue_runner(
        QueueRunner(
            top,
            puts,
            close_op=tf.group(*(q.close() for q in queues)),
            cancel_op=tf.group(*(q.close(cancel_pending_enqueues=True) for q in queues)),
            queue_closed_exception_types=_ENDED,
        )
    )
