"""Turns that write what they make over what the last one made, where nobody else has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.program.program import Program

SIDE, TURNS = 64, 6  # large enough for in-place work; few enough for single turns


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def start(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(SIDE, SIDE)).astype(np.float32)


def loop_of(body: Callable[..., Any], *values: Any) -> list[Any]:
    return tf.while_loop(
        lambda i, *_: i < TURNS, lambda i, *rest: [i + 1, *body(i, *rest)], [0, *values]
    )


def body_of(session: tf.Session, fetches: Any, feeds: Any) -> Program:
    (loop,) = session._program(fetches, feeds).bound.inner.values()
    return loop.program("body")


@pytest.mark.parametrize("kept", [False, True])
def test_a_sum_stays_where_it_is(kept):
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    total = loop_of(lambda i, acc: [acc + 0.5], x)[1]
    first = start(0)
    before = first.copy()
    with tf.Session() as session:
        body = body_of(session, total, {x: first})
        with body.turns([1] if kept else []) as turn:
            one = turn((np.int32(0), first))
            held = one[1].copy()
            two = turn(one)
            assert (two[1] is one[1]) != kept
            np.testing.assert_array_equal(two[1], held + np.float32(0.5))
        np.testing.assert_array_equal(first, before)  # the caller's array is no turn's
        for _ in range(2):
            got = session.run(total, {x: first})
            np.testing.assert_allclose(got, before + TURNS * 0.5, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(first, before)


def test_only_what_the_turn_before_made_is_written_over():
    """Values may come from elsewhere: from turns that were made in one call."""
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    total = loop_of(lambda i, acc: [acc + 0.5], x)[1]
    with tf.Session() as session, body_of(session, total, {x: start(0)}).turns() as turn:
        one = turn((np.int32(0), start(0)))
        other = start(1)
        two = turn((one[0], other))
        assert two[1] is not other and two[1] is not one[1]
        np.testing.assert_array_equal(other, start(1))


def test_what_is_written_down_is_left_alone():
    x = tf.placeholder(tf.float32, [SIDE, SIDE])

    def body(i, acc, rows):
        return acc + 1.0, rows.write(i, acc)

    rows = loop_of(body, x, tf.TensorArray(tf.float32, TURNS))[2].stack()
    with tf.Session() as session:
        got = session.run(rows, {x: start(2)})
    np.testing.assert_allclose(got, start(2) + np.arange(TURNS)[:, None, None], rtol=1e-6)


def test_what_the_next_turn_reads_elsewhere_is_left_alone():
    x, y = (tf.placeholder(tf.float32, [SIDE, SIDE]) for _ in range(2))
    fetches = loop_of(lambda i, a, b: [a * 0.5 + b, a], x, y)[1:]
    a, b = start(3), start(4)
    with tf.Session() as session:
        got = session.run(fetches, {x: a, y: b})
    for _ in range(TURNS):
        a, b = a * np.float32(0.5) + b, a
    np.testing.assert_allclose(got, [a, b], rtol=1e-5, atol=1e-6)


def test_variables_that_begin_with_one_array():
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    fetches = loop_of(lambda i, a, b: [a + 1.0, b * 2.0], x, x)[1:]
    with tf.Session() as session:
        for _ in range(2):
            a, b = session.run(fetches, {x: start(5)})
            np.testing.assert_allclose(a, start(5) + TURNS, rtol=1e-5)
            np.testing.assert_array_equal(b, start(5) * 2**TURNS)


def test_what_a_view_reads_is_left_alone():
    """acc[::-1] would read what has been written."""
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    total = loop_of(lambda i, acc: [acc * 0.5 + acc[::-1]], x)[1]
    want = start(6)
    for _ in range(TURNS):
        want = want * np.float32(0.5) + want[::-1]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(total, {x: start(6)}), want, rtol=1e-4, atol=1e-4)


def test_after_an_error_a_loop_begins_anew():
    """The turn that fails has written over what the one before made."""
    x, limit = tf.placeholder(tf.float32, [SIDE, SIDE]), tf.placeholder(tf.int32, [])

    def body(i, acc):
        with tf.control_dependencies([tf.assert_less(i, limit)]):
            return [acc + 1.0]

    total = loop_of(body, x)[1]
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(total, {x: start(7), limit: 3})
        got = session.run(total, {x: start(7), limit: TURNS})
    np.testing.assert_allclose(got, start(7) + TURNS, rtol=1e-5)
