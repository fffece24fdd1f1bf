"""Threads that stop together."""

from __future__ import annotations

import threading

import pytest

import opdock as tf


def test_stopping():
    coord = tf.train.Coordinator()
    turning = threading.Barrier(4)

    def loop():
        turning.wait()
        while not coord.should_stop():
            coord.wait_for_stop(0.01)

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for t in threads:
        t.start()
    turning.wait()
    assert not coord.wait_for_stop(0.01)
    coord.request_stop()
    coord.join(threads)
    assert coord.should_stop()
    assert not any(t.is_alive() for t in threads)


def test_the_first_error_is_raised_by_join():
    coord = tf.train.Coordinator()

    def fail():
        with coord.stop_on_exception():
            raise ValueError("first")

    thread = threading.Thread(target=fail)
    coord.register_thread(thread)
    thread.start()
    with pytest.raises(ValueError, match="first"):
        coord.join()


def test_clean_stops_are_no_errors():
    coord = tf.train.Coordinator()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "the end"))
    coord.join()
    with pytest.raises(ValueError, match="raised"):
        other = tf.train.Coordinator()
        try:
            raise ValueError("raised")
        except ValueError as e:
            other.request_stop(e)
        other.join()


def test_a_thread_that_does_not_stop():
    coord = tf.train.Coordinator()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, daemon=True)
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="did not stop|not stopped|stop"):
        coord.join([thread], stop_grace_period_secs=0.05)
    release.set()


def test_clear_stop():
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.clear_stop()
    assert not coord.should_stop()


def test_looper_threads():
    coord = tf.train.Coordinator()
    turns = []

    def turn():
        turns.append(1)
        if len(turns) == 3:
            coord.request_stop()

    thread = tf.train.LooperThread.loop(coord, None, turn)
    coord.join([thread])
    assert len(turns) == 3


def test_threads_that_were_never_started_are_not_waited_for():
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.join([threading.Thread(target=coord.request_stop)])
    assert coord.joined
