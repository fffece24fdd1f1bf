"""Batches of segments of sequences of any length, dense or sparse, with states between them."""

from __future__ import annotations

from typing import Any

import opdock as tf
from opdock import errors
from opdock.contrib.training import sequence_checks as checks
from opdock.contrib.training.sequence_queueing_state_saver import (
    NextQueuedSequenceBatch,
    SequenceQueueingStateSaver,
)
from opdock.graph.nodes.composite import SparseTensor, SparseTensorValue
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.composed.sparse_values import (
    add_many_sparse_to_tensors_map,
    take_many_sparse_from_tensors_map,
)
from opdock.train.queue_runner import QueueRunner, add_queue_runner

__all__ = ["batch_sequences_with_states"]

_SPARSE = (SparseTensor, SparseTensorValue)
_MOVED = "_context_in_seq_"
"""Begins the names of sparse tensors of the whole that travel as sequences."""
_KEYS = 100_000_000


def batch_sequences_with_states(
    input_key: Any, input_sequences: dict[str, Any], input_context: dict[str, Any],
    input_length: Any, initial_states: dict[str, Any], num_unroll: int, batch_size: int,
    num_threads: int = 3, capacity: int = 1000, allow_small_batch: bool = True, pad: bool = True,
    make_keys_unique: bool = False, make_keys_unique_seed: int | None = None,
    name: str | None = None,
) -> NextQueuedSequenceBatch:  # fmt: skip
    """Batches of segments of sequences, each with the state that the one before it has left.

    A queue runner, collected in the graph, takes the sequences. The states that a step is given
    (`batch.state`) have to be saved in that step (`batch.save_state`).

    Args:
        input_key: a string scalar that no other sequence on its way has.
        input_sequences: Tensors and SparseTensors [steps, ...] by name.
        input_context: Tensors and SparseTensors by name that all segments of a sequence get.
        input_length: an int32 scalar, the number of steps; that of the sequences if it is None
            and they are padded.
        initial_states: the states of first segments by name.
        num_unroll: how many steps a segment has.
        batch_size: how many segments a step has.
        num_threads: how many threads take sequences.
        capacity: how many sequences may be on their way.
        allow_small_batch: whether the last batches may be smaller.
        pad: whether sequences are padded to a multiple of `num_unroll`.
        make_keys_unique: whether a random number is put behind the key.
        make_keys_unique_seed: its seed.
        name: a name for the operations.

    Raises:
        TypeError: something that is no tensor.
        ValueError: a shape that is not known, or a capacity under the batch size.
    """
    given = [*input_sequences.values(), *input_context.values(), *initial_states.values()]
    with tf.name_scope(name, "batch_sequences_with_states", given):
        if pad:
            length, input_sequences = padding(input_sequences, num_unroll)
            input_length = length if input_length is None else input_length
        else:
            input_sequences = {k: _checked(k, v, num_unroll) for k, v in input_sequences.items()}
        context, sequences = _context_as_sequences(input_context, input_sequences, num_unroll)
        sequences, kept = _kept_sparse(sequences)
        if make_keys_unique:
            number = tf.random_uniform(
                (), minval=0, maxval=_KEYS, dtype=tf.int32, seed=make_keys_unique_seed
            )
            input_key = tf.strings.join([input_key, tf.as_string(number)])
        saver = SequenceQueueingStateSaver(
            batch_size, num_unroll, input_length=input_length, input_key=input_key,
            input_sequences=sequences, input_context=context, initial_states=initial_states,
            capacity=capacity, allow_small_batch=allow_small_batch,
        )  # fmt: skip
        ready = tf.cast(saver.barrier.ready_size(), tf.float32)
        tf.summary.scalar(f"queue/{saver.barrier.name}/ready_segment_batches_", ready)
        ended = (errors.OutOfRangeError, errors.CancelledError)
        add_queue_runner(
            QueueRunner(
                saver, [saver.prefetch_op] * num_threads, queue_closed_exception_types=ended
            )
        )
        batch = saver.next_batch
        _restore_sparse(batch, kept, batch_size, num_unroll)
        return batch


# ---------------------------------------------------------------- lengths
def _checked(key: str, value: Any, num_unroll: int) -> Any:
    """A sequence whose length is a multiple of that of segments, when it runs."""
    if isinstance(value, _SPARSE):
        holds, told = checks.multiple_of(
            value.dense_shape[0], num_unroll, f"SparseTensor {key} first dimension"
        )
        parts = (value.indices, value.values, value.dense_shape)
        return SparseTensor(
            *(checks.asserted(p, holds, *told, name="multiple_of_checked") for p in parts)
        )
    try:
        value = convert_to_tensor(value)
    except TypeError as e:
        raise TypeError(
            "Unsupported input_sequences expected Tensor or SparseTensor values, got: "
            f"{type(value)} for key {key}"
        ) from e
    holds, told = checks.multiple_of(
        tf.shape(value)[0], num_unroll, f"Tensor {key} first dimension"
    )
    return checks.asserted(value, holds, *told, name="multiple_of_checked")


def padding(sequences: Any, num_unroll: Any) -> tuple[Any, dict[str, Any]]:
    """The length of sequences, and the sequences with zeros or "" up to a multiple of a number.

    Args:
        sequences: Tensors and SparseTensors [steps, ...] by name; all dense ones are as long.
        num_unroll: the number.

    Raises:
        TypeError: no dictionary, or a name that is no string.
        ValueError: the number is none.
    """
    if not isinstance(num_unroll, int):
        raise ValueError(f"Unsupported num_unroll expected int, got: {num_unroll}")
    if not isinstance(sequences, dict):
        raise TypeError(f"Unsupported sequences expected dict, got: {sequences}")
    for key in sequences:
        if not isinstance(key, str):
            raise TypeError(f"Unsupported sequences key expected string, got: {key}")
    if not sequences:
        return 0, {}
    tensors = {
        k: v if isinstance(v, _SPARSE) else convert_to_tensor(v)
        for k, v in sorted(sequences.items())
    }
    length = _common_length(tensors)
    full = length + (num_unroll - length % num_unroll) % num_unroll
    return length, {k: _padded(v, full) for k, v in tensors.items()}


def _common_length(tensors: dict[str, Any]) -> Tensor:
    lengths = [tf.shape(v)[0] for v in tensors.values() if isinstance(v, Tensor)]
    if not lengths:
        sparse = [tf.cast(v.dense_shape[0], tf.int32) for v in tensors.values()]
        return tf.reduce_max(tf.stack(sparse))
    told = tf.strings.reduce_join(tf.as_string(tf.stack(lengths)), separator=" ")
    words = tf.strings.join(["All sequence lengths must match, but received lengths: ", told])
    same = [tf.Assert(tf.equal(found, lengths[0]), [words]) for found in lengths[1:]]
    with tf.control_dependencies(same):
        return tf.identity(lengths[0])


def _padded(value: Any, full: Tensor) -> Any:
    if not isinstance(value, Tensor):
        size = tf.concat([[tf.cast(full, tf.int64)], value.dense_shape[1:]], 0)
        return SparseTensor(value.indices, value.values, size)
    missing = tf.concat(([full - tf.shape(value)[0]], tf.shape(value)[1:]), 0)
    nothing = tf.constant("" if value.dtype == tf.string else 0, dtype=value.dtype)
    return tf.concat([value, tf.fill(missing, nothing)], 0)


# ---------------------------------------------------------------- sparse tensors of the whole
def _context_as_sequences(
    context: dict[str, Any], sequences: dict[str, Any], num_unroll: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The context's dense tensors; and the sequences, among them its sparse ones, which stand at
    the first step of each segment."""
    steps: Any = tf.constant(1)
    for first in sequences.values():
        steps = tf.shape(first)[0] if isinstance(first, Tensor) else first.dense_shape[0]
        break
    steps = tf.cast(steps, tf.int64)
    dense = {k: v for k, v in context.items() if not isinstance(v, _SPARSE)}
    moved = {
        f"{_MOVED}{k}": _at_each_segment(v, steps, num_unroll)
        for k, v in sorted(context.items())
        if isinstance(v, _SPARSE)
    }
    return dense, {**sequences, **moved}


def _at_each_segment(value: Any, steps: Tensor, num_unroll: int) -> SparseTensor:
    count = tf.cast(steps // num_unroll, tf.int32)
    cells = tf.shape(value.indices)[0]
    inner = tf.tile(value.indices, tf.stack([count, 1]))
    first = tf.range(0, steps, num_unroll)
    where = tf.reshape(tf.tile(tf.expand_dims(first, 1), tf.stack([1, cells])), [-1, 1])
    return SparseTensor(
        tf.concat([where, inner], 1),
        tf.tile(value.values, tf.expand_dims(count, 0)),
        tf.concat([tf.expand_dims(steps, 0), value.dense_shape], 0),
    )


# ---------------------------------------------------------------- sparse tensors, kept meanwhile
def _kept_sparse(sequences: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Operation]]:
    """The sequences, with handles in place of sparse ones; and by name what has kept those."""
    kept: dict[str, Operation] = {}
    found = dict(sequences)
    for key in sorted(sequences):
        if isinstance(sequences[key], _SPARSE):
            found[key] = add_many_sparse_to_tensors_map(sequences[key])
            kept[key] = found[key].op
    return found, kept


def _restore_sparse(
    batch: NextQueuedSequenceBatch, kept: dict[str, Operation], batch_size: int, num_unroll: int
) -> None:
    """Puts sparse tensors in place of handles, and those of the whole back into the context."""
    for key, op in kept.items():
        handles = tf.reshape(batch.sequences.pop(key), [-1])
        flat = take_many_sparse_from_tensors_map(op, handles, rank=None)
        row, inner = flat.indices[:, :1], flat.indices[:, 1:]
        if key.startswith(_MOVED):
            size = tf.concat([[batch_size], flat.dense_shape[1:]], 0)
            indices = tf.concat([row // num_unroll, inner], axis=1)
            batch.context[key.removeprefix(_MOVED)] = SparseTensor(indices, flat.values, size)
            continue
        size = tf.concat([[batch_size, num_unroll], flat.dense_shape[1:]], 0)
        indices = tf.concat([row // num_unroll, row % num_unroll, inner], axis=1)
        batch.sequences[key] = SparseTensor(indices, flat.values, size)
