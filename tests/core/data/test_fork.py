"""A child after `fork` that goes on with what its parent's threads work for: an error, no hang."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import pytest

import opdock as tf
from tests.threads import WAIT

pytestmark = [
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
    ),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def in_a_child(act: Callable[[], Any]) -> Any:
    """What `act` gives in a child; a child that hangs is an error."""
    context = multiprocessing.get_context("fork")
    given, taken = context.Pipe(duplex=False)
    child = context.Process(target=lambda: taken.send(act()))
    child.start()
    try:
        assert given.poll(WAIT), "the child hangs"
        return given.recv()
    finally:
        child.kill()
        child.join()


def refused(session: tf.Session, fetches: Any) -> str:
    """What the error says."""
    try:
        return f"no error, but {session.run(fetches)}"
    except tf.errors.FailedPreconditionError as e:
        return e.message


PIPELINES: dict[str, Callable[[tf.data.Dataset], tf.data.Dataset]] = {
    "prefetch": lambda d: d.prefetch(2),
    "map": lambda d: d.map(lambda x: tf.py_func(lambda v: v, [x], tf.int64), 2),
    "map in batches": lambda d: d.map(
        lambda x: tf.fill([2000], tf.cast(x, tf.float32)) * 2.0, 2
    ).batch(3),
    "interleave": lambda d: d.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(9), 2, num_parallel_calls=2
    ),
    "in the middle": lambda d: d.prefetch(1).map(lambda x: x + 1).shuffle(3, seed=1).batch(2),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_an_iterator_with_threads_raises(name: str) -> None:
    element = PIPELINES[name](tf.data.Dataset.range(1000)).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(element)
        texts = in_a_child(lambda: [refused(session, element) for _ in range(2)])
        assert all("process that this one was forked from" in text for text in texts), texts
        session.run(element)  # the parent's goes on


def test_such_an_iterator_can_be_initialized_again() -> None:
    iterator = tf.data.Dataset.range(1000).prefetch(2).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element) == 0

        def act() -> Any:
            session.run(iterator.initializer)
            return session.run(element)

        assert in_a_child(act) == 0
        assert session.run(element) == 1


def test_an_iterator_without_threads_goes_on() -> None:
    element = tf.data.Dataset.range(9).map(lambda x: x * x).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(2)] == [0, 1]
        assert in_a_child(lambda: [int(session.run(element)) for _ in range(2)]) == [4, 9]
        assert session.run(element) == 4


def test_what_waits_for_a_queue_or_an_area_raises_in_a_child_that_has_no_other_thread() -> None:
    queue = tf.FIFOQueue(1, tf.int32, [])
    put, get = queue.enqueue(7), queue.dequeue()
    area = tf.contrib.staging.StagingArea([tf.int32], [[]])
    staged = area.get()
    with tf.Session() as session:

        def act() -> list[Any]:
            texts = [refused(session, get), refused(session, staged)]
            session.run(put)
            texts.append(refused(session, put))
            return [*texts, session.run(get)]

        *texts, found = in_a_child(act)
        assert all("would wait for ever" in text for text in texts), texts
        assert found == 7


def test_a_child_waits_for_threads_of_its_own() -> None:
    queue = tf.FIFOQueue(3, tf.int32, [])
    put, get = queue.enqueue(7), queue.dequeue()
    with tf.Session() as session:

        def act() -> Any:
            thread = threading.Thread(target=lambda: session.run([put, put]))
            thread.start()
            found = session.run(get)
            thread.join()
            return found

        assert in_a_child(act) == 7
