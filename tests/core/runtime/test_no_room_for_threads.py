"""A system that has no room for more threads: what only helps is done without, the rest says so."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf


@pytest.fixture
def room(monkeypatch):
    """How many more threads may start, in a list that a test changes; None for any."""
    left: list[int | None] = [None]
    start = threading.Thread.start

    def limited(self: threading.Thread) -> None:
        if left[0] == 0:
            raise RuntimeError("can't start new thread")
        if left[0] is not None:
            left[0] -= 1
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    return left


@pytest.mark.parametrize("count", [0, 1])
def test_a_step_does_without_helpers(room, count):
    room[0] = count
    x = tf.placeholder(tf.float32, [256, 256])
    # Stateless functions of Python are what helpers take.
    summands = [tf.py_func(lambda v, i=i: v + i, [x], tf.float32, stateful=False) for i in range(4)]
    products = [tf.matmul(x, y) for y in summands]
    config = tf.ConfigProto(inter_op_parallelism_threads=4, intra_op_parallelism_threads=4)
    given = np.eye(256, dtype=np.float32)
    with tf.Session(config=config) as sess:
        for _ in range(3):
            found = sess.run(products, {x: given})
            for i, product in enumerate(found):
                np.testing.assert_allclose(product, given + i, rtol=1e-5)


def _elements(dataset: tf.data.Dataset, sess: tf.Session) -> list[int]:
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    while True:
        try:
            found.append(int(sess.run(following)))
        except tf.errors.OutOfRangeError:
            return found


@pytest.mark.parametrize(
    "ahead",
    [
        lambda d: d.prefetch(2),
        lambda d: d.map(lambda i: tf.py_func(lambda v: v, [i], tf.int64), num_parallel_calls=4),
    ],
    ids=["prefetch", "map"],
)
def test_a_pipeline_says_that_it_has_no_thread(room, ahead):
    numbers = ahead(tf.data.Dataset.range(9))
    with tf.Session() as sess:
        assert _elements(numbers, sess) == list(range(9))
        room[0] = 0
        with pytest.raises(tf.errors.ResourceExhaustedError, match="RLIMIT_NPROC"):
            _elements(numbers, sess)
        room[0] = 1  # fewer than it asked for
        assert _elements(numbers, sess) == list(range(9))


def test_a_step_with_a_time_limit_says_that_it_has_no_thread(room):
    with tf.Session() as sess:
        room[0] = 0
        with pytest.raises(tf.errors.ResourceExhaustedError, match="RLIMIT_NPROC"):
            sess.run(tf.constant(1) + 1, options=tf.RunOptions(timeout_in_ms=60_000))
