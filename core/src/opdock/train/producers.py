"""`tf.train.string_input_producer` and its like: queues that threads fill from a tensor's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope, refuse_eagerly
from opdock.graph.variables.variable import Variable
from opdock.ops.composed.queues import FIFOQueue, QueueBase
from opdock.train.queue_runner import NOT_EAGERLY, QueueRunner, add_queue_runner

__all__ = [
    "input_producer", "limit_epochs", "match_filenames_once", "range_input_producer",
    "slice_input_producer", "string_input_producer",
]  # fmt: skip


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable with the names of the files that match patterns, looked up once.

    Args:
        pattern: a pattern or a vector of them.
        name: a name for the operations.
    """
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(
            tf.matching_files(pattern), trainable=False, validate_shape=False, name=scope,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """A tensor that can be evaluated so many times, then raises OutOfRangeError.

    Counts in a local variable: run `tf.local_variables_initializer()` first.

    Raises:
        ValueError: `num_epochs` is not positive.
    """
    if num_epochs is None:
        return tensor  # type: ignore[no-any-return]
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        epochs = Variable(
            tf.constant(0, dtypes.int64), name="epochs", trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return tf.identity(tensor, name=scope)


def input_producer(
    input_tensor: Any, element_shape: Any = None, num_epochs: int | None = None,
    shuffle: bool = True, seed: int | None = None, capacity: int = 32,
    shared_name: str | None = None, summary_name: str | None = None, name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:  # fmt: skip
    """A queue of a tensor's rows, which a queue runner fills again and again.

    Args:
        input_tensor: the rows.
        element_shape: the shape of a row, if it cannot be inferred.
        num_epochs: how often all rows are produced before OutOfRangeError; for ever by default.
        shuffle: whether the rows are in another order each time.
        seed: for that order.
        capacity: how many rows the queue holds.
        shared_name: nodes with one such name share one queue.
        summary_name: the tag of a summary of how full the queue is; none by default.
        name: a name for the queue.
        cancel_op: ends the waiting for room, instead of the queue's own operation.

    Raises:
        ValueError: the shape of a row is not known.
    """
    refuse_eagerly(NOT_EAGERLY)
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.get_shape()[1:].merge_with(element_shape)
        if not shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be "
                "specified"
            )
        if shuffle:
            rows = tf.random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(
            capacity, [rows.dtype.base_dtype], [shape], shared_name=shared_name,
            name=name or "fifo_queue",
        )  # fmt: skip
        fill = queue.enqueue_many([rows])
        add_queue_runner(QueueRunner(queue, [fill], cancel_op=cancel_op))
        if summary_name is not None:
            tf.summary.scalar(summary_name, tf.cast(queue.size(), dtypes.float32) * (1 / capacity))
        return queue


def string_input_producer(
    string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None,
    name: str | None = None, cancel_op: Any = None,
) -> QueueBase:  # fmt: skip
    """A queue of strings, such as file names; see `input_producer` for the arguments.

    Args:
        string_tensor: the strings.
        num_epochs: how many times; None for ever.
        shuffle: whether the order is random each time.
        seed: the seed of the order.
        capacity: the size of the queue.
        shared_name: a name under which other sessions find the queue.
        name: a name for the operation.
        cancel_op: run where the queue is cancelled.

    Raises:
        ValueError: there are no strings. Where that shows in a step only, it fails.
    """
    nothing = "string_input_producer requires a non-null input tensor"
    given = isinstance(string_tensor, (list, tuple, str, bytes, np.ndarray))
    if string_tensor is None or (given and not len(string_tensor)):
        raise ValueError(nothing)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        with control_dependencies([tf.Assert(tf.greater(tf.size(strings), 0), [nothing])]):
            strings = tf.identity(strings)
        return input_producer(
            strings, [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", scope, cancel_op,
        )  # fmt: skip


def range_input_producer(
    limit: Any, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None,
) -> QueueBase:  # fmt: skip
    """A queue of the integers below `limit`; see `input_producer` for the other arguments.

    Args:
        limit: the number of integers.
        num_epochs: how many times; None for ever.
        shuffle: whether the order is random each time.
        seed: the seed of the order.
        capacity: the size of the queue.
        shared_name: a name under which other sessions find the queue.
        name: a name for the operation.
    """
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(
            tf.range(limit), [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", scope,
        )  # fmt: skip


def slice_input_producer(
    tensor_list: Any, num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """The same row of several tensors, another one in each step.

    Args:
        tensor_list: tensors with equally many rows.
        num_epochs, shuffle, seed, capacity, shared_name: as for `input_producer`.
        name: a name for the operations.

    Raises:
        ValueError: there are no tensors.
    """
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor_or_indexed_slices(t) for t in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        queue = range_input_producer(
            tf.shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name
        )
        index = queue.dequeue()
        return [tf.gather(t, index) for t in tensors]
