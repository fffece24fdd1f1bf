"""Sequences cut into segments, of which each finds the state that the one before it has left.

A barrier puts a segment and its state together: segments wait there under their keys, and the state
that a step saves goes to the key of the next segment. A queue of tokens bounds how many sequences
are on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import opdock as tf
from opdock.contrib.training import sequence_checks as checks
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with
from opdock.ops.composed.barriers import Barrier
from opdock.ops.composed.queues import FIFOQueue

__all__ = ["NextQueuedSequenceBatch", "SequenceQueueingStateSaver"]

_Made = TypeVar("_Made")
_TOKEN = 21051976  # nobody reads it


class SequenceInput:
    """One example as tensors.

    Args:
        length: the number of its steps, without padding.
        key: a string that no other example on its way has.
        sequences: tensors [steps, ...] by name.
        context: tensors of the whole by name.

    Raises:
        TypeError: no dictionaries, or a name that is no string.
        ValueError: no sequence, or a name with a colon.
    """

    def __init__(self, length: Any, key: Any, sequences: Any, context: Any) -> None:
        self.length = convert_to_tensor(length, name="length")
        self.key = convert_to_tensor(key, name="key")
        for what, given in (("sequences", sequences), ("context", context)):
            if not isinstance(given, dict):
                raise TypeError(f"{what} must be a dict")
        if not sequences:
            raise ValueError("must have at least one sequence tensor")
        _check_names("sequence key", sequences)
        _check_names("context key", context)
        self.sequences = _tensors("sequence", sequences)
        self.context = _tensors("context", context)


def _check_names(what: str, names: Any) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} must be string: {name}")
        if ":" in name:
            raise ValueError(f"{what} may not have a colon: '{name}'")


def _tensors(what: str, given: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors by name, sorted."""
    return {k: convert_to_tensor(given[k], name=f"{what}_{k}") for k in sorted(given)}


class NextQueuedSequenceBatch:
    """The segments of one step: of different sequences, each with its state.

    Its values are tensors; all of them in one step belong together.
    """

    def __init__(self, state_saver: SequenceQueueingStateSaver, received: Any) -> None:
        self._saver = state_saver
        self.insertion_index: Tensor = received[0]
        self.key: Tensor = received[1]
        found: dict[str, Tensor] = dict(zip(state_saver.components, received[2], strict=True))
        self.length: Tensor = found["length"]
        self.total_length: Tensor = found["total_length"]
        self.next_key: Tensor = found["next_key"]
        self.sequence: Tensor = found["sequence"]
        self.sequence_count: Tensor = found["sequence_count"]
        # `batch_sequences_with_states` puts sparse ones in place of handles.
        self.sequences: dict[str, Any] = {**_of_kind(found, "sequence:")}
        self.context: dict[str, Any] = {**_of_kind(found, "context:")}
        self.batch_size: Tensor = tf.squeeze(tf.shape(self.length))
        done = self.sequence + 1 >= self.sequence_count
        self._going_on = tf.reshape(tf.where(tf.logical_not(done)), [-1])
        ended = tf.reduce_sum(tf.cast(done, tf.int32))
        # Room for as many sequences as have ended, before anyone has their state.
        with tf.control_dependencies([state_saver.capacity_queue.dequeue_many(ended)]):
            self._states = {k: tf.identity(v) for k, v in _of_kind(found, "state:").items()}

    def state(self, state_name: str) -> Tensor:
        """The states with which the segments begin, [segments, ...]."""
        return self._states[state_name]

    def save_state(self, state_name: str, value: Any, name: str | None = None) -> Operation:
        """Keeps the states with which the segments end for those that follow them.

        Each state has to be saved in each step, or the sequences go no further.

        Args:
            state_name: which state.
            value: a tensor of the shape of `state(state_name)`.
            name: a name for the operations.

        Raises:
            KeyError: there is no such state.
            ValueError: the shape is known to be another one.
        """
        if state_name not in self._states:
            raise KeyError(f"state was not declared: {state_name}")
        saver = self._saver
        with (
            tf.name_scope(name, "InputQueueingStateSaver_SaveState", values=[value]),
            colocate_with(saver.capacity_queue.queue_ref),
        ):
            value = convert_to_tensor(value)
            value = checks.of_shape_of(
                tf.identity(value, name=f"convert_{state_name}"), self._states[state_name]
            )
            return saver.barrier.insert_many(
                saver.components.index(f"state:{state_name}"),
                tf.gather(self.next_key, self._going_on), tf.gather(value, self._going_on),
                name=f"BarrierInsertState_{state_name}",
            )  # fmt: skip


def _of_kind(found: dict[str, Tensor], kind: str) -> dict[str, Tensor]:
    return {k.removeprefix(kind): v for k, v in found.items() if k.startswith(kind)}


class SequenceQueueingStateSaver:
    """Takes sequences one by one and gives batches of their segments, with states.

    `prefetch_op` takes a sequence; a queue runner runs it. `next_batch` gives the segments of a
    step, in which the states have to be saved (`save_state`).

    Args:
        batch_size: how many segments a step has.
        num_unroll: how many steps a segment has; the sequences' lengths are multiples of it.
        input_length: an int32 scalar, the number of steps without padding.
        input_key: a string scalar that no other sequence on its way has.
        input_sequences: tensors [steps, ...] by name.
        input_context: tensors by name that all segments of a sequence get.
        initial_states: the states of first segments by name.
        capacity: how many sequences may be on their way; without bound by default.
        allow_small_batch: whether the last batches may be smaller once it is closed.
        name: a name for the operations.

    Raises:
        TypeError: a name that is no string, a length that is no int32, or a key that is no string.
        ValueError: a capacity under the batch size, no state, or a shape that is not known.
    """

    def __init__(
        self, batch_size: Any, num_unroll: Any, input_length: Any, input_key: Any,
        input_sequences: Any, input_context: Any, initial_states: Any, capacity: int | None = None,
        allow_small_batch: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        input_key = _with_room(input_key, capacity, batch_size)
        self.capacity_queue = FIFOQueue(
            capacity=-1 if capacity is None else capacity, dtypes=[tf.int32], shapes=[[]]
        )
        self._batch_size, self._num_unroll = batch_size, num_unroll
        self._allow_small_batch = allow_small_batch
        self._prefetch: Operation | None = None
        self._next: NextQueuedSequenceBatch | None = None
        with colocate_with(self.capacity_queue.queue_ref):
            if not isinstance(initial_states, dict):
                raise TypeError("initial_states must be a dictionary")
            if not initial_states:
                raise ValueError(
                    "initial_states may not be empty: at least one state variable is required to "
                    "properly enqueue split sequences to run in separate iterations"
                )
            _check_names("state name", initial_states)
            given = [input_length, input_key, *input_sequences.values(), *input_context.values()]
            with tf.name_scope(name, "InputQueueingStateSaver", given) as scope:
                self._scope: str = scope
                self._take_in(
                    SequenceInput(input_length, input_key, input_sequences, input_context),
                    _tensors("state", initial_states),
                )

    def _take_in(self, example: SequenceInput, states: dict[str, Tensor]) -> None:
        """Checks one example, and makes the barrier for its segments."""
        checks.fully_defined("state", states)
        checks.fully_defined("context", example.context)
        checks.fully_defined("sequence", example.sequences, but_first=True)
        length, self._key = checks.of_rank(example.length, 0), checks.of_rank(example.key, 0)
        if length.dtype != tf.int32:
            raise TypeError(f"length dtype must be int32, but received: {length.dtype}")
        if self._key.dtype != tf.string:
            raise TypeError(f"key dtype must be string, but received: {self._key.dtype}")
        first = next(iter(example.sequences.values()))
        padded = tf.identity(tf.shape(first)[0], name="padded_length")
        holds, told = checks.multiple_of(padded, self._num_unroll, f"Tensor {padded.name}")
        self._padded = checks.asserted(padded, holds, *told, name="multiple_of_checked")
        self._sequences = {
            k: checks.of_sizes(v, [self._padded], f"sorted_sequences_{k}")
            for k, v in example.sequences.items()
        }
        self._context, self._states = example.context, states
        told_length = ["Input length should be <= than length from sequences:", length, " vs. "]
        fits = tf.Assert(tf.less_equal(length, self._padded), [*told_length, self._padded])
        with tf.control_dependencies([fits]):
            self._length = tf.identity(length)
        kinds = {"length": tf.int32, "total_length": tf.int32, "next_key": tf.string,
                 "sequence": tf.int32, "sequence_count": tf.int32}  # fmt: skip
        types: list[Any] = list(kinds.values())
        sizes: list[list[Any]] = [[] for _ in kinds]
        self.components = list(kinds)
        for kind, tensors, of in (
            ("sequence", self._sequences, self._segment_shape),
            ("context", self._context, _shape),
            ("state", self._states, _shape),
        ):
            for key, tensor in tensors.items():
                self.components.append(f"{kind}:{key}")
                types.append(tensor.dtype)
                sizes.append(of(tensor))
        self._barrier = Barrier(types=types, shapes=sizes)

    def _segment_shape(self, tensor: Tensor) -> list[Any]:
        return [self._num_unroll, *tensor.shape.as_list()[1:]]

    @property
    def name(self) -> str:
        """The name scope of its operations."""
        return self._scope

    @property
    def barrier(self) -> Barrier:
        """Where segments wait for their state."""
        return self._barrier

    @property
    def batch_size(self) -> Any:
        """How many segments a step has."""
        return self._batch_size

    @property
    def num_unroll(self) -> Any:
        """How many steps a segment has."""
        return self._num_unroll

    @property
    def prefetch_op(self) -> Operation:
        """Takes one sequence, as soon as there is room for it."""
        if self._prefetch is None:
            self._prefetch = self._within(self._inserts)
        return self._prefetch

    @property
    def next_batch(self) -> NextQueuedSequenceBatch:
        """The segments of a step; always the same object."""
        _ = self.prefetch_op
        if self._next is None:
            self._next = self._within(self._received)
        return self._next

    def _within(self, make: Callable[[], _Made]) -> _Made:
        with tf.name_scope(None), tf.name_scope(self._scope, values=[self._barrier.barrier_ref]):
            return make()

    def _received(self) -> NextQueuedSequenceBatch:
        taken = self._barrier.take_many(
            self._batch_size, self._allow_small_batch, name="BarrierTakeMany"
        )
        return NextQueuedSequenceBatch(self, taken)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Takes no more sequences.

        Args:
            cancel_pending_enqueues: whether those on their way are dropped.
            name: a name for the operation.
        """
        with tf.name_scope(name, "SQSSClose", [self.prefetch_op]) as scope:
            closed = [
                self._barrier.close(cancel_pending_enqueues, "BarrierClose"),
                self.capacity_queue.close(cancel_pending_enqueues, "FIFOClose"),
            ]
            done: Operation = tf.group(*closed, name=scope)
            return done

    # ------------------------------------------------------------ one sequence into the barrier
    def _inserts(self) -> Operation:
        count = self._padded // self._num_unroll
        number = tf.range(count)
        every = tf.ones(tf.expand_dims(count, 0), tf.int32)
        keys, next_keys = self._keys(number, count)
        left = tf.minimum(self._num_unroll, tf.maximum(0, self._length - self._num_unroll * number))
        rows = {
            "length": left, "total_length": self._length * every, "next_key": next_keys,
            "sequence": number, "sequence_count": count * every,
            **{f"sequence:{k}": self._cut(v, count, k) for k, v in self._sequences.items()},
            **{f"context:{k}": _repeated(v, count, k) for k, v in self._context.items()},
        }  # fmt: skip
        inserts = {key: self._insert(key, keys, value) for key, value in rows.items()}
        token = self.capacity_queue.enqueue((_TOKEN,))
        # The state makes the first segment complete: nobody may take it before there is room.
        with tf.control_dependencies([inserts["sequence"], token]):
            first = [
                self._insert(f"state:{k}", tf.stack([keys[0]]), tf.stack([v]))
                for k, v in self._states.items()
            ]
        done: Operation = tf.group(*inserts.values(), token, *first, name="StateSaverPrefetchGroup")
        return done

    def _insert(self, component: str, keys: Tensor, rows: Tensor) -> Operation:
        named = component.replace(":", "_")
        index = self.components.index(component)
        return self._barrier.insert_many(index, keys, rows, name=f"BarrierInsert_{named}")

    def _keys(self, number: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        """Each segment's key, and that of the one after it."""
        digits = [tf.as_string(n, width=5, fill="0") for n in (number, count)]
        keys = tf.strings.join(
            [digits[0], "_of_", digits[1], ":", self._key], name="StringJoinCurrentKeys"
        )
        stop = tf.strings.join(["STOP:", self._key], name="StringJoinStop")
        return keys, tf.concat([keys[1:], tf.expand_dims(stop, 0)], 0, name="concat_next_keys")

    def _cut(self, sequence: Tensor, count: Tensor, key: str) -> Tensor:
        inner = sequence.shape.as_list()[1:]
        segment = tf.stack([self._num_unroll, *inner])
        cut = tf.reshape(sequence, tf.concat([tf.expand_dims(count, 0), segment], 0))
        return checks.of_sizes(cut, [count, self._num_unroll, *inner], f"reshaped_sequences_{key}")


def _with_room(key: Any, capacity: int | None, batch_size: Any) -> Any:
    """The key, read only where a batch has room.

    Raises:
        ValueError: it is known to have none.
    """
    if capacity is None:
        return key
    if isinstance(batch_size, Tensor):
        enough = tf.assert_greater_equal(
            tf.cast(capacity, tf.int64), tf.cast(batch_size, tf.int64),
            message="capacity needs to be >= batch_size.",
        )  # fmt: skip
        with tf.control_dependencies([enough]):
            return tf.identity(key)
    if capacity < batch_size:
        raise ValueError(f"capacity {capacity} needs to be >= batch_size {batch_size}")
    return key


def _shape(tensor: Tensor) -> list[Any]:
    sizes: list[Any] = tensor.shape.as_list()
    return sizes


def _repeated(value: Tensor, count: Tensor, key: str) -> Tensor:
    sizes = _shape(value)
    every = tf.tile(tf.expand_dims(value, 0), tf.stack([count, *[1] * len(sizes)]))
    return checks.of_sizes(every, [count, *sizes], f"expanded_context_{key}")
