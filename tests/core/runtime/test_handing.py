"""Python functions of one step that wait for each other, as TensorFlow's threads let them."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.runtime import handing
from opdock.runtime.cancellation import Cancellation
from opdock.util import threads


def call(function, *inputs):
    return tf.py_func(function, list(inputs), tf.int64)


def users():
    return {t for t in threading.enumerate() if t.name == "opdock-user"}


@pytest.mark.parametrize("first", [True, False])
def test_one_waits_for_the_other(first):
    handed = queue.Queue()
    takes = [lambda: np.int64(handed.get()), lambda: (handed.put(5), np.int64(1))[1]]
    a, b = (call(f) for f in (takes if first else takes[::-1]))
    with tf.Session() as session:
        for _ in range(3):
            assert sorted(session.run([a, b])) == [1, 5]


def test_each_waits_for_the_other_in_turn():
    there, back = queue.Queue(), queue.Queue()

    def asks():
        found = 0
        for i in range(5):
            there.put(i)
            found += back.get()
        return np.int64(found)

    def answers():
        for _ in range(5):
            back.put(10 * there.get())
        return np.int64(-1)

    with tf.Session() as session:
        assert session.run([call(asks), call(answers)]) == [100, -1]


def test_one_waits_for_what_a_queue_gives_another():
    done = threading.Event()
    waits = call(lambda: (done.wait(), np.int64(3))[1])
    shared = tf.FIFOQueue(1, tf.int64, shapes=[])
    enqueue, taken = shared.enqueue(2), shared.dequeue()
    tells = call(lambda v: (done.set(), np.int64(v))[1], taken)
    with tf.Session() as session:
        assert session.run([waits, tells + 1, enqueue])[:2] == [3, 3]


def test_in_a_loop_and_in_a_dataset():
    def pair(i):
        handed = queue.Queue()
        return (
            call(lambda v: np.int64(v + handed.get()), i),
            call(lambda v: (handed.put(10), np.int64(v))[1], i),
        )

    def turn(i, total):
        a, b = pair(i)
        a.set_shape([])
        b.set_shape([])
        return i + 1, total + a + b

    _, total = tf.while_loop(lambda i, total: i < 3, turn, [np.int64(0), np.int64(0)])
    rows = tf.data.Dataset.range(3).map(pair).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(total) == 36
        assert [session.run(rows) for _ in range(3)] == [(10, 0), (11, 1), (12, 2)]


def test_those_that_compute_keep_their_order(monkeypatch):
    """However long one takes: nobody who has a processor is taken to wait."""
    used = itertools.count(1)
    monkeypatch.setattr(handing.Handed, "_used", lambda self: float(next(used)))
    seen = []

    def slow():
        threading.Event().wait(5 * handing._LOOK)
        seen.append("slow")
        return np.int64(1)

    def quick():
        seen.append("quick")
        return np.int64(2)

    with tf.Session() as session:
        assert session.run([call(slow), call(quick)]) == [1, 2]
    assert seen == ["slow", "quick"]


@pytest.mark.parametrize("others", [False, True])
def test_one_alone_runs_where_the_step_does_unless_others_may_end_that(monkeypatch, others):
    monkeypatch.setattr(handing, "others", lambda: others)
    with tf.Session() as session:
        where = session.run(call(lambda: np.int64(threading.get_ident())))
    assert (where == threading.get_ident()) is not others


def test_threads_of_opdock_end_no_steps(monkeypatch):
    over, found = threading.Event(), []
    # Others are those of who runs the tests, and what earlier ones left, which may end at any time.
    strangers = set(threading.enumerate()) - {threading.current_thread()}
    every = threading.enumerate
    monkeypatch.setattr(threading, "enumerate", lambda: [t for t in every() if t not in strangers])
    assert not threads.others()
    for name in ("opdock-user", "opdock_prefetch"):
        helper = threading.Thread(target=over.wait, name=name)
        helper.start()
        found.append(threads.others())
    stranger = threading.Thread(target=over.wait)
    stranger.start()
    found.append(threads.others())
    over.set()
    assert found == [False, False, True]


def test_what_is_prefetched_runs_where_it_is_made(monkeypatch):
    """Whoever takes it waits for the thread that makes it, and can leave that behind."""
    monkeypatch.setattr(handing, "others", lambda: True)
    names = tf.data.Dataset.range(2).map(
        lambda n: tf.py_func(lambda _: threading.current_thread().name, [n], tf.string)
    )
    ahead = names.prefetch(1).make_one_shot_iterator().get_next()
    here = names.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run([ahead, here]) == [b"opdock_prefetch", b"opdock-user"]


def test_threads_are_used_again():
    before = users()
    a, b = call(lambda: np.int64(1)), call(lambda: np.int64(2))
    with tf.Session() as session:
        for _ in range(50):
            session.run([a, b])
    assert len(users() - before) <= 1


def test_what_one_raises_names_its_node_and_the_step_ends_with_the_other():
    raised, ended = threading.Event(), []

    def waits():
        raised.wait()
        ended.append(1)
        return np.int64(1)

    def fails():
        raised.set()
        raise ValueError("no such thing")

    with tf.Session() as session:
        a = tf.py_func(waits, [], tf.int64, name="waits")
        b = tf.py_func(fails, [], tf.int64, name="fails")
        with pytest.raises(tf.errors.InvalidArgumentError, match="no such thing") as caught:
            session.run([a, b])
        assert caught.value.op is b.op
        assert ended == [1]
        # And of one that was handed over before it failed.
        raised.clear()
        c = tf.py_func(lambda: fails() if raised.wait() else 0, [], tf.int64, name="later")
        d = tf.py_func(lambda: (raised.set(), np.int64(0))[1], [], tf.int64)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no such thing") as caught:
            session.run([c, d])
        assert caught.value.op is c.op


def test_without_room_for_threads_functions_run_where_the_step_does(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_idle", [])
    monkeypatch.setattr(threading.Thread, "start", refused)
    with tf.Session() as session:
        a, b = (call(lambda: np.int64(threading.get_ident())) for _ in range(2))
        assert session.run([a, b]) == [threading.get_ident()] * 2


def test_a_call_that_only_lacks_a_processor_is_told_from_one_that_waits() -> None:
    told = Path("/proc/self/task").is_dir()  # elsewhere than on Linux, all are taken to wait
    over, begun = threading.Event(), threading.Event()

    def ready() -> None:
        begun.set()
        while not over.is_set():
            os.sched_yield()

    def waits() -> None:
        begun.set()
        over.wait()

    for call, queues in ((ready, told), (waits, False)):
        over.clear()
        begun.clear()
        handed = handing.hand_over(call, (), Cancellation("closed"))
        begun.wait()
        with handed._changed:
            while handed._queues() is not queues:  # it is so sooner or later
                pass
        over.set()
        handed.outcome()
