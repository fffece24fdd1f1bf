"""Segments of sequences with states between them, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf

training: Any = tf.contrib.training


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def saver(**changed: Any) -> Any:
    given: dict[str, Any] = {
        "batch_size": 1, "num_unroll": 2, "input_length": 3, "input_key": "a",
        "input_sequences": {"x": np.arange(4.0)}, "input_context": {"c": [7]},
        "initial_states": {"s": np.float32(10.0)}, "capacity": 2, **changed,
    }  # fmt: skip
    return training.SequenceQueueingStateSaver(**given)


def test_a_state_goes_from_segment_to_segment() -> None:
    queue = saver()
    batch = queue.next_batch
    state = batch.state("s")
    saved = batch.save_state("s", state + 1)
    wanted = [batch.key, batch.next_key, batch.sequences["x"], batch.context["c"], batch.length,
              batch.sequence_count, state, saved]  # fmt: skip
    with tf.Session() as s:
        s.run(queue.prefetch_op)
        first, second = s.run(wanted), s.run(wanted)
        assert s.run(queue.barrier.ready_size()) == 0
        s.run(queue.prefetch_op)  # there is room again
        s.run(queue.close())
    assert first[0] == [b"00000_of_00002:a"]
    assert [*first[1], *second[1]] == [b"00001_of_00002:a", b"STOP:a"]
    assert first[2].tolist() == [[0.0, 1.0]]
    assert second[2].tolist() == [[2.0, 3.0]]
    assert first[3].tolist() == second[3].tolist() == [[7]]
    assert [*first[4], *second[4]] == [2, 1]
    assert [*first[6], *second[6]] == [10.0, 11.0]


def test_sequences_of_any_length_with_sparse_ones() -> None:
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2])
    whole = tf.SparseTensor([[1]], [9], [4])
    batch = training.batch_sequences_with_states(
        "k", {"x": tf.constant([[1.0], [2.0], [3.0]]), "y": sparse}, {"z": whole}, None,
        {"s": tf.zeros([1])}, num_unroll=2, batch_size=1, num_threads=1, capacity=1,
        make_keys_unique=True,
    )  # fmt: skip
    saved = batch.save_state("s", batch.state("s") + 1.0)
    dense = [tf.sparse.to_dense(batch.sequences["y"]), tf.sparse.to_dense(batch.context["z"])]
    wanted = [batch.sequences["x"], *dense, batch.length, batch.state("s"), saved]
    with tf.Session() as s:
        stop = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, stop)
        first, second = s.run(wanted), s.run(wanted)
        stop.request_stop()
        stop.join(threads)
    assert first[0].tolist() == [[[1.0], [2.0]]]
    assert second[0].tolist() == [[[3.0], [0.0]]]
    assert first[1].tolist() == [[[0.0, 5.0], [0.0, 0.0]]]
    assert second[1].tolist() == [[[6.0, 0.0], [0.0, 0.0]]]
    assert first[2].tolist() == second[2].tolist() == [[0, 9, 0, 0]]
    assert [*first[3], *second[3]] == [2, 1]
    assert [first[4].tolist(), second[4].tolist()] == [[[0.0]], [[1.0]]]


@pytest.mark.parametrize(
    ("changed", "error", "match"),
    [
        ({"capacity": 0}, ValueError, "capacity 0 needs to be >= batch_size 1"),
        ({"initial_states": {}}, ValueError, "may not be empty"),
        ({"initial_states": {"a:b": 0.0}}, ValueError, "may not have a colon"),
        ({"input_sequences": {}}, ValueError, "at least one sequence"),
        ({"input_sequences": {1: [0.0, 1.0]}}, TypeError, "must be string"),
        ({"input_length": np.int64(3)}, TypeError, "length dtype must be int32"),
        ({"input_key": 3}, TypeError, "key dtype must be string"),
        ({"input_key": ["a", "b"]}, ValueError, "Rank check failed for"),
    ],
)
def test_what_is_refused(changed: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        saver(**changed)


def test_states_have_their_shape() -> None:
    batch = saver().next_batch
    with pytest.raises(KeyError, match="state was not declared: t"):
        batch.save_state("t", 0.0)
    with pytest.raises(ValueError, match="Rank check failed for.*convert_s"):
        batch.save_state("s", np.zeros([1, 1], np.float32))


def test_lengths_are_multiples() -> None:
    steps = tf.placeholder(tf.float32, [None])
    queue = saver(input_sequences={"x": steps})
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.InvalidArgumentError, match="multiple of: 2, but saw value: 3"),
    ):
        s.run(queue.prefetch_op, {steps: [1.0, 2.0, 3.0]})
