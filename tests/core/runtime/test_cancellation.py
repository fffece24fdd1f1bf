"""Steps that are cut short: by closing the session, by their time, by Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading

import numpy as np
import pytest

import opdock as tf


def endless(turning: threading.Event):
    """A loop that never ends; `turning` is set when it has begun."""

    def body(i):
        tell = tf.py_func(lambda n: turning.set() or n, [i], tf.int64)
        return tf.reshape(tell, []) + 1

    return tf.while_loop(lambda i: i >= 0, body, [tf.constant(0, tf.int64)])


class Running:
    """A step in a thread of its own, and how it ended."""

    def __init__(self, sess, fetch):
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(sess, fetch), daemon=True)
        self.thread.start()

    def run(self, sess, fetch):
        try:
            sess.run(fetch)
        except Exception as e:
            self.error = e


def test_closing_a_session_ends_an_endless_loop():
    turning = threading.Event()
    with tf.Graph().as_default():
        sess, fetch = tf.Session(), endless(turning)
        step = Running(sess, fetch)
        turning.wait()
        sess.close()
        step.thread.join()
    assert isinstance(step.error, tf.errors.CancelledError)
    assert "closed" in str(step.error)


@pytest.mark.parametrize("whole_session", [False, True])
def test_a_loop_ends_with_its_time(whole_session):
    turning = threading.Event()
    config = tf.ConfigProto(operation_timeout_in_ms=20) if whole_session else None
    options = None if whole_session else tf.RunOptions(timeout_in_ms=20)
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        fetch, other = endless(turning), tf.constant(3) + 4
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(fetch, options=options)
        for thread in threading.enumerate():
            if thread.name == "opdock-step":
                thread.join()  # it would not end if the loop went on
        if not whole_session:
            assert sess.run(other) == 7


def told(event: threading.Event, element):
    """An element, after `event` was set."""
    with tf.control_dependencies([tf.py_func(lambda: event.set() or 0, [], tf.int64)]):
        return tf.identity(element)


def endless_filter(turning: threading.Event):
    numbers = tf.data.Dataset.range(1 << 60).filter(lambda n: told(turning, n) < 0)
    return numbers.make_one_shot_iterator().get_next()


def endless_prefetch(turning: threading.Event):
    numbers = tf.data.Dataset.range(1 << 60).filter(lambda n: told(turning, n) < 0).prefetch(2)
    return numbers.make_one_shot_iterator().get_next()


def endless_reduce(turning: threading.Event):
    numbers = tf.data.Dataset.range(1 << 60)
    return numbers.reduce(np.int64(0), lambda total, n: total + told(turning, n))


ENDLESS = (endless, endless_filter, endless_prefetch, endless_reduce)


@pytest.mark.parametrize("made", ENDLESS)
def test_closing_a_session_ends_all_steps_of_it(made):
    turning = threading.Event()
    with tf.Graph().as_default():
        sess, fetch = tf.Session(), made(turning)
        steps = [Running(sess, fetch) for _ in range(2)]
        turning.wait()
        sess.close()
        for step in steps:
            step.thread.join()
    assert all(isinstance(s.error, (tf.errors.CancelledError, RuntimeError)) for s in steps)


@pytest.mark.parametrize("made", ENDLESS)
def test_time_ends_a_step_whatever_it_does(made):
    turning = threading.Event()
    with tf.Graph().as_default(), tf.Session() as sess:
        fetch = made(turning)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(fetch, options=tf.RunOptions(timeout_in_ms=20))
        for thread in threading.enumerate():
            if thread.name == "opdock-step":
                thread.join()  # it would not end if the step went on


class Function:
    """A function of the user's that is told when to return, and another that comes after it."""

    def __init__(self):
        self.begun, self.over, self.later = threading.Event(), threading.Event(), 0
        first = tf.py_func(self.first, [], tf.int64)
        self.fetch = tf.py_func(self.second, [first], tf.int64)

    def first(self):
        self.begun.set()
        self.over.wait()
        return 1

    def second(self, n):
        self.later += 1
        return n


def test_nothing_comes_after_what_was_running_when_the_session_was_closed():
    with tf.Graph().as_default():
        sess, function = tf.Session(), Function()
        step = Running(sess, function.fetch)
        function.begun.wait()
        sess.close()
        function.over.set()
        step.thread.join()
    assert isinstance(step.error, tf.errors.CancelledError) and function.later == 0
    assert "PyFunc" in str(step.error)


def test_nothing_comes_after_what_was_running_when_time_was_over():
    with tf.Graph().as_default(), tf.Session() as sess:
        function = Function()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(function.fetch, options=tf.RunOptions(timeout_in_ms=20))
        function.over.set()
        for thread in threading.enumerate():
            if thread.name == "opdock-step":
                thread.join()
        assert function.later == 0
        function.begun.clear()
        assert sess.run(function.fetch) == 1 and function.later == 1


def test_long_lines_look_whether_they_are_to_end():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2048, 2048])
        small = tf.placeholder(tf.float32, [8, 8])
        y, z = x, small
        for _ in range(6):
            y, z = tf.matmul(y, x), tf.matmul(z, small)
        for fetch, looks in ((y, 5), (z, 0)):
            feeds = {x: np.zeros((2048, 2048)), small: np.zeros((8, 8))}
            assert len(sess._program(fetch, feeds).bound.compiled.pauses) == looks


def test_a_loop_in_a_session_that_lives_is_left_alone():
    with tf.Graph().as_default(), tf.Session() as sess:
        total = tf.while_loop(lambda i: i < 1000, lambda i: i + 1, [tf.constant(0)])
        assert sess.run(total) == 1000
        other = tf.Session()
        other.close()
        assert sess.run(total) == 1000


def test_an_interrupted_step_leaves_a_usable_session():
    interrupts = [True]

    def maybe(x):
        if interrupts:
            interrupts.clear()
            signal.raise_signal(signal.SIGINT)
        return x

    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(np.ones(8, np.float32))
        sess.run(v.initializer)
        turned = tf.reshape(tf.py_func(maybe, [v * 2.0], tf.float32), [8])
        step = v.assign(turned + tf.exp(v))
        with pytest.raises(KeyboardInterrupt):
            sess.run(step)
        np.testing.assert_array_equal(sess.run(v), np.ones(8))
        np.testing.assert_allclose(sess.run(step), np.full(8, 2 + np.e), rtol=1e-6)


def test_who_was_interrupted_while_waiting_gets_nothing():
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]])
        put, take = queue.enqueue(7), queue.dequeue()
        for step in (put, take):
            sess.run(step)  # what is interrupted below is no compiler
        ready = threading.Event()
        main, waiting = threading.main_thread().ident, threading.Condition.wait.__code__

        def interrupt():
            ready.wait()
            while sys._current_frames()[main].f_code is not waiting:
                pass
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            ready.set()
            sess.run(take)
        thread.join()
        sess.run(put)
        assert sess.run(queue.size()) == 1
        assert sess.run(take) == 7
