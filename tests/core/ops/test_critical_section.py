"""Critical sections: one at a time, released when done or failed."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import opdock as tf
from opdock.eager.modes import eager_mode


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_steps_of_several_threads_lose_no_update() -> None:
    v = tf.Variable(0, use_resource=True)
    section = tf.CriticalSection()

    def read_then_write() -> Any:
        read = v.read_value()
        return v.assign(tf.identity(read) + 1)

    done = section.execute(read_then_write)
    with tf.Session() as session:
        session.run(v.initializer)
        threads = [
            threading.Thread(target=lambda: [session.run(done.op) for _ in range(20)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.run(v) == 80


def test_a_step_that_failed_holds_nothing() -> None:
    section = tf.CriticalSection()
    x = tf.placeholder(tf.float32, [])
    y = section.execute(lambda: tf.check_numerics(x, "no number"))
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
            session.run(y, {x: float("nan")})
        assert session.run(y, {x: 2.0}) == 2.0


def test_results_keep_their_structure() -> None:
    section = tf.CriticalSection(name="mine")
    both = section.execute(lambda: {"a": tf.constant(1), "b": [tf.constant(2), tf.no_op()]})
    with tf.Session() as session:
        assert session.run(both["a"]) == 1
        assert session.run(both["b"][0]) == 2
        session.run(both["b"][1])
    assert section.name == "mine"


def test_what_would_wait_for_itself_is_refused() -> None:
    section, other = tf.CriticalSection(), tf.CriticalSection()
    with pytest.raises(ValueError, match="would cause deadlocks"):
        section.execute(lambda: section.execute(lambda: tf.constant(1)))
    v = tf.Variable(0, use_resource=True)
    section.execute(lambda: v.assign_add(1))
    with pytest.raises(ValueError, match="requested exclusive resource access"):
        other.execute(lambda: v.assign_add(1))


def test_eagerly_a_function_may_have_no_results() -> None:
    with eager_mode():
        section, total = tf.CriticalSection(), tf.Variable(0.0)

        def add() -> None:
            total.assign_add(2.0)

        assert [section.execute(add) for _ in range(2)] == [None, None]
        assert total.numpy() == 4.0
        found = section.execute(lambda: (total + 1.0, tf.no_op()))
        assert found[0].numpy() == 5.0 and found[1] is None
