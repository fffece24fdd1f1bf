"""Barriers: what is complete, in which order it leaves, and what closing does."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.barriers import Barrier
from tests.threads import start

FIRST = -(2**63)


def two() -> Barrier:
    return Barrier((tf.string, tf.int32), shapes=((), ()), name="b")


def test_the_complete_leave_in_the_order_in_which_they_were_begun() -> None:
    b = two()
    take, sizes = b.take_many(2), (b.ready_size(), b.incomplete_size())
    steps = [
        b.insert_many(0, ["k1", "k2"], ["a", "b"]), b.insert_many(1, ["k1"], [1]),
        b.insert_many(0, ["k3"], ["c"]), b.insert_many(1, ["k3"], [3]),
        b.insert_many(1, ["k2"], [2]),
    ]  # fmt: skip
    with tf.Session() as sess:
        for step in steps:
            sess.run(step)
        assert sess.run(sizes) == (3, 0)
        indices, keys, (words, numbers) = sess.run(take)
        assert indices.tolist() == [FIRST, FIRST]
        assert keys.tolist() == [b"k1", b"k2"]
        assert words.tolist() == [b"a", b"b"]
        assert numbers.tolist() == [1, 2]
        assert sess.run(b.take_many(1))[0].tolist() == [FIRST + 1]


def test_an_insertion_that_fails_leaves_nothing() -> None:
    b = two()
    sizes = b.ready_size(), b.incomplete_size()
    invalid = tf.errors.InvalidArgumentError
    keys = tf.placeholder(tf.string, [None])
    put = b.insert_many(0, keys, tf.fill([tf.size(keys)], "x"))
    with tf.Session() as sess:
        sess.run(put, {keys: ["a"]})
        for given in (["b", "a"], ["b", "b"]):
            with pytest.raises(invalid, match="already has a value for component 0 in barrier b"):
                sess.run(put, {keys: given})
        with pytest.raises(invalid, match="out of range 2 > num_components"):
            sess.run(b.insert_many(2, ["c"], [1]))
        with pytest.raises(invalid, match="expected components of int32, got string"):
            sess.run(b.insert_many(1, ["c"], ["x"]))
        with pytest.raises(invalid, match=r"Shape mismatch in component 1.*Expected \[1\]"):
            sess.run(b.insert_many(1, ["c"], [[1, 2]]))
        with pytest.raises(invalid, match="no elements are not supported"):
            sess.run(b.insert_many(1, ["c"], np.zeros((1, 0), np.int32)))
        assert sess.run(sizes) == (0, 1)
    with pytest.raises(ValueError, match="must be equal"):
        b.insert_many(0, ["a", "b"], ["x"])


def test_a_closed_barrier_completes_what_was_begun() -> None:
    b = two()
    words, take = b.insert_many(0, ["a", "b"], ["x", "y"]), b.take_many(5, allow_small_batch=True)
    with tf.Session() as sess:
        sess.run(words)
        sess.run(b.close())
        with pytest.raises(tf.errors.CancelledError, match="brand new key: c"):
            sess.run(b.insert_many(0, ["c"], ["z"]))
        sess.run(b.insert_many(1, ["b"], [2]))
        assert sess.run(take)[1].tolist() == [b"b"]
        with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 2, total size 1"):
            sess.run(b.take_many(2))
        sess.run(b.insert_many(1, ["a"], [1]))
        assert sess.run(take)[1].tolist() == [b"a"]
        with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
            sess.run(take)
        with pytest.raises(tf.errors.CancelledError, match="already closed"):
            sess.run(b.close())
        sess.run(b.close(cancel_pending_enqueues=True))


@pytest.mark.parametrize("how", ["insert", "close", "cancel", "end", "deadline"])
def test_what_ends_the_waiting(how: str) -> None:
    b = two()
    take, word = b.take_many(1), b.insert_many(0, ["a"], ["x"])
    options = tf.RunOptions(timeout_in_ms=200) if how == "deadline" else None
    sess = tf.Session()
    sess.run(word)
    begun = threading.Event()

    def wait() -> Any:
        begun.set()
        try:
            return sess.run(take, options=options)
        except RuntimeError as e:  # the session was closed before
            return tf.errors.CancelledError(None, None, str(e))

    found = start(wait)
    begun.wait()
    if how == "insert":
        sess.run(b.insert_many(1, ["a"], [1]))
        assert found()[1].tolist() == [b"a"]
    elif how == "close":
        sess.run(b.close())
        sess.run(b.insert_many(1, ["a"], [1]))
        assert found()[1].tolist() == [b"a"]
    elif how == "cancel":
        sess.run(b.close(cancel_pending_enqueues=True))
        assert isinstance(found(), tf.errors.OutOfRangeError)
    elif how == "end":
        sess.close()
        assert isinstance(found(), tf.errors.CancelledError)
    else:
        assert isinstance(found(), tf.errors.DeadlineExceededError)
    sess.close()


def test_every_tuple_comes_once_through_many_threads() -> None:
    b = Barrier((tf.int32, tf.int32), shapes=((), ()))
    keys, values = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int32, [None])
    puts, take = [b.insert_many(i, keys, values) for i in (0, 1)], b.take_many(10)
    batches = [[f"{10 * i + j}" for j in range(10)] for i in range(8)]
    with tf.Session() as sess:
        takes = [start(lambda: sess.run(take)) for _ in batches]
        done = [
            start(lambda p=p, b=b: sess.run(p, {keys: b, values: [int(k) for k in b]}))
            for b in batches for p in puts
        ]  # fmt: skip
        assert [join() for join in done] == [None] * 16
        found = [join() for join in takes]
    numbers = [int(k) for _, ks, (x, y) in found for k in ks]
    assert sorted(numbers) == list(range(80))
    for _, ks, (x, y) in found:
        assert [int(k) for k in ks] == x.tolist() == y.tolist()


def test_those_who_share_a_barrier_agree_on_it() -> None:
    first = Barrier(tf.float32, shapes=[[]], shared_name="s")
    typed = Barrier(tf.int32, shapes=[[]], shared_name="s")
    shaped = Barrier(tf.float32, shapes=[[2]], shared_name="s")
    unknown = Barrier(tf.float32)
    with pytest.raises(ValueError, match=r"received shape '\(0,\)' at index 0"):
        Barrier(tf.float32, shapes=[[0]])
    invalid = tf.errors.InvalidArgumentError
    with tf.Session() as sess:
        sess.run(first.ready_size())
        for other, what in ((typed, "component types"), (shaped, "component shapes")):
            with pytest.raises(invalid, match=what):
                sess.run(other.ready_size())
        sess.run(unknown.insert_many(0, ["a"], [1.0]))
        with pytest.raises(invalid, match="specified shapes"):
            sess.run(unknown.take_many(1))
        with pytest.raises(invalid, match="capacity=-1"):
            sess.run(tf.raw_ops.Barrier(component_types=[tf.int32], shapes=[[]], capacity=3))
        with pytest.raises(invalid, match="Timeout not supported"):
            sess.run(first.take_many(1, timeout=5))
