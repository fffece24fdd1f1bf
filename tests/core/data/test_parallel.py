"""Work ahead, in threads: in order, bounded, and over when nobody wants it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset
from tests.threads import WAIT, start


def running() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("opdock_p")}


def test_several_elements_are_worked_on_at_once_and_come_in_order():
    together = threading.Barrier(3)

    def meet(x):
        together.wait(WAIT)
        return x

    dataset = Dataset.range(6).map(lambda x: tf.py_func(meet, [x], tf.int64), num_parallel_calls=3)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [int(session.run(element)) for _ in range(6)] == list(range(6))


def test_a_buffer_is_bounded():
    made = []
    full = threading.Event()

    def make(x):
        made.append(int(x))
        if len(made) == 3:
            full.set()
        return x

    dataset = Dataset.range(100).map(lambda x: tf.py_func(make, [x], tf.int64)).prefetch(2)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 0
        assert full.wait(WAIT)
        # One was taken and two wait: no other is made until there is room.
        assert len(made) == 3


def test_errors_come_in_their_places():
    def check(x):
        return tf.check_numerics(x, "bad")

    values = np.array([1.0, np.nan, 3.0])
    for dataset in (
        Dataset.from_tensor_slices(values).map(check).prefetch(3),
        Dataset.from_tensor_slices(values).map(check, num_parallel_calls=2),
    ):
        element = dataset.make_one_shot_iterator().get_next()
        with tf.Session() as session:
            assert session.run(element) == 1
            with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
                session.run(element)
            assert session.run(element) == 3


def test_order_may_be_given_up():
    late = threading.Event()

    def wait_if_first(x):
        if x == 0:
            assert late.wait(WAIT)
        return x

    options = tf.data.Options()
    options.experimental_deterministic = False
    dataset = Dataset.range(4).map(
        lambda x: tf.py_func(wait_if_first, [x], tf.int64), num_parallel_calls=2
    )
    element = dataset.with_options(options).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 1
        late.set()
        assert sorted(int(session.run(element)) for _ in range(3)) == [0, 2, 3]


def waiting_session():
    """A session whose iterator's threads wait for room, and for a queue that stays empty."""
    queue = tf.FIFOQueue(1, tf.int64, [[]])
    dataset = Dataset.range(100).map(lambda x: x, 2).prefetch(2)
    stuck = Dataset.range(3).map(lambda x: x + queue.dequeue(), 2)
    iterators = [d.make_initializable_iterator() for d in (dataset, stuck)]
    element = iterators[0].get_next()
    session = tf.Session()
    session.run([i.initializer for i in iterators])
    session.run(element)
    return session, iterators[1].get_next()


def test_a_closed_session_leaves_no_thread():
    before = running()
    session, stuck = waiting_session()
    told = []

    def ask():
        with pytest.raises(tf.errors.CancelledError):
            session.run(stuck)
        told.append(True)

    asking = threading.Thread(target=ask)
    asking.start()
    while len(running() - before) < 4:  # both iterators have begun
        threading.Event().wait(0.01)
    session.close()
    asking.join(WAIT)
    assert told and not running() - before


def test_an_iterator_that_begins_anew_ends_its_threads():
    before = running()
    iterator = Dataset.range(100).prefetch(2).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        for _ in range(3):
            session.run(iterator.initializer)
            assert session.run(element) == 0
            assert len(running() - before) == 1
    assert not running() - before


def test_a_deadline_ends_the_wait_for_an_element():
    queue = tf.FIFOQueue(1, tf.int64, [[]])
    iterator = Dataset.range(3).map(lambda x: x + queue.dequeue()).prefetch(1)
    iterator = iterator.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(element, options=tf.RunOptions(timeout_in_ms=50))
        session.run(queue.enqueue(5))
        assert session.run(element) == 5


def test_a_generator_is_finalized_when_its_iterator_ends():
    class Source:
        def __iter__(self):
            return self

        def __next__(self):
            return 42

        def __del__(self):
            gone.append(True)

    gone: list[bool] = []
    element = Dataset.from_generator(Source, tf.int64).take(1).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 42
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
    gc.collect()
    assert gone


def test_two_iterators_of_one_step_lose_nothing_where_both_wait():
    def slow():
        gate = threading.Semaphore(0)

        def wait(x):
            assert gate.acquire(timeout=WAIT)
            return x

        source = Dataset.range(24).map(lambda x: tf.py_func(wait, [x], tf.int64))
        # A batch has taken some elements when it waits for others.
        return gate, source.prefetch(1).batch(4).make_one_shot_iterator().get_next()

    (first, a), (second, b) = slow(), slow()
    found = [], []

    def run():
        for _ in range(6):
            for values, batch in zip(found, session.run([a, b]), strict=True):
                values.extend(batch.tolist())

    with tf.Session() as session:
        done = start(run)
        for _ in range(24):
            first.release()
            second.release()
        assert done() is None
    assert found == (list(range(24)), list(range(24)))
