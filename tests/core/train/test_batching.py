"""Input pipelines of queues: producers, runners and batches, from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@contextmanager
def running() -> Iterator[tf.Session]:
    """A session whose queues are being filled; its threads have ended afterwards."""
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            yield sess
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=60)
        assert not any(t.is_alive() for t in threads)


def drain(fetch: Any) -> list[Any]:
    """All values until the input ends."""
    found = []
    with running() as sess:
        while True:
            try:
                found.append(sess.run(fetch))
            except tf.errors.OutOfRangeError:
                return found


def test_strings_epoch_by_epoch() -> None:
    names = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    assert drain(names.dequeue()) == [b"a", b"b", b"c"] * 2


def test_each_epoch_is_shuffled_anew() -> None:
    numbers = tf.train.range_input_producer(50, num_epochs=2, seed=3).dequeue()
    found = [int(v) for v in drain(numbers)]
    first, second = found[:50], found[50:]
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


def test_slices_stay_together() -> None:
    x, y = tf.train.slice_input_producer([np.arange(10), np.arange(10) * 2.0], num_epochs=1)
    assert all(b == 2 * a for a, b in drain([x, y]))


def test_batches_and_the_smaller_one_at_the_end() -> None:
    number = tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
    batch = tf.train.batch([number, number * 10], 3, allow_smaller_final_batch=True)
    found = drain(batch)
    assert [x.tolist() for x, _ in found] == [[0, 1, 2], [3, 4, 5], [6]]
    assert all((y == 10 * x).all() for x, y in found)
    assert batch[0].shape.as_list() == [None]


def test_batches_as_dictionaries_from_several_sources() -> None:
    sources = [
        {"x": tf.train.range_input_producer(n, num_epochs=1).dequeue(), "of": tf.constant(n)}
        for n in (4, 8)
    ]
    found = drain(tf.train.batch_join(sources, 2))
    values = sorted((int(o), int(x)) for b in found for o, x in zip(b["of"], b["x"], strict=True))
    assert values == [(n, i) for n in (4, 8) for i in range(n)]


def test_rows_of_differing_length_are_padded() -> None:
    number = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    row = tf.fill([number], 1)
    (batch,) = drain(tf.train.batch([row], 4, dynamic_pad=True))
    assert batch.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_shuffled_batches_hold_everything_once() -> None:
    number = tf.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()
    batch = tf.train.shuffle_batch([number], 8, 30, 10, num_threads=3, seed=1)
    found = np.concatenate(drain(batch)).tolist()
    assert sorted(found) == list(range(40)) != found


@pytest.mark.parametrize("many", [False, True])
def test_what_is_not_to_be_kept_is_left_out(many: bool) -> None:
    number = tf.train.range_input_producer(12, num_epochs=1, shuffle=False).dequeue()
    rows = tf.stack([number, number + 100]) if many else number
    batch = tf.train.maybe_batch([rows], tf.equal(rows % 2, 0), 3, enqueue_many=many)
    found = np.concatenate(drain(batch)).tolist()
    assert found and all(n % 2 == 0 for n in found)


@pytest.mark.parametrize("many", [False, True])
def test_sparse_tensors_come_out_as_batches_of_them(many: bool) -> None:
    number = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    value, at = tf.reshape(number, [1]), tf.cast(tf.reshape(number, [1, 1]), tf.int64)
    row = tf.SparseTensor(at, value, [5])
    if many:
        row = tf.sparse_reshape(row, [1, 5])
    batch = tf.train.batch({"row": row, "n": tf.reshape(number, [1]) if many else number}, 4,
                           enqueue_many=many)  # fmt: skip
    assert batch["row"].indices.shape.as_list() == [None, 2]
    (found,) = drain(batch)
    assert found["n"].tolist() == [0, 1, 2, 3]
    assert found["row"].indices.tolist() == [[i, i] for i in range(4)]
    assert found["row"].values.tolist() == [0, 1, 2, 3]
    assert found["row"].dense_shape.tolist() == [4, 5]


def test_an_error_in_a_thread_reaches_the_coordinator() -> None:
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    bad = tf.check_numerics(tf.constant(np.inf), "bad")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(bad)]))
    with tf.Session() as sess:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        with pytest.raises(tf.errors.OpError):
            sess.run(queue.dequeue())
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            coordinator.join(threads, stop_grace_period_secs=60)


def test_a_runner_survives_its_message() -> None:
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    runner = tf.train.QueueRunner(
        queue, [queue.enqueue(1.0)],
        queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
    )  # fmt: skip
    again = tf.train.QueueRunner.from_proto(runner.to_proto())
    assert again.name == runner.name
    assert [op.name for op in again.enqueue_ops] == [op.name for op in runner.enqueue_ops]
    assert again.queue_closed_exception_types == runner.queue_closed_exception_types
    assert (again.close_op, again.cancel_op) == (runner.close_op, runner.cancel_op)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="non-null"):
        tf.train.string_input_producer([])
    with pytest.raises(ValueError, match="num_epochs must be > 0"):
        tf.train.limit_epochs(tf.constant(1), 0)
    with pytest.raises(ValueError, match="bigger than min_after_dequeue"):
        tf.train.shuffle_batch([tf.constant(1)], 2, 3, 3)
    with pytest.raises(ValueError, match="rank"):
        tf.train.batch([tf.placeholder(tf.float32)], 2)
    with pytest.raises(TypeError, match="consistent"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2)
    with pytest.raises(ValueError, match="default session"):
        tf.train.start_queue_runners()
    with pytest.raises(ValueError, match="queue and enqueue_ops"):
        tf.train.QueueRunner()
