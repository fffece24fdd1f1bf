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
