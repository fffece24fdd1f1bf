"""Simplify: nodes that return their input go; see test_passes_agree for the bits."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def kinds(program):
    return [n.op for n in program.block.nodes if n.op not in ("Const", "_Feed")]


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (lambda x: x * 1.0, []),
        (lambda x: 1.0 * x / 1.0 - 0.0, []),
        (lambda x: tf.identity(tf.stop_gradient(x)), []),
        (lambda x: tf.reshape(x, [2, 3]), []),
        (lambda x: tf.transpose(x, [0, 1]), []),
        (lambda x: x + 0.0, ["Add"]),
        (lambda x: x * tf.ones([4, 2, 3]), ["Mul"]),
        (lambda x: x * tf.ones([1, 1, 1]), ["Mul"]),
        (lambda x: tf.reshape(x, [3, 2]), ["Reshape"]),
        (lambda x: tf.reduce_sum(x, []), []),
        (lambda x: tf.reduce_sum(x, [0]), ["Sum"]),
    ],
)
def test_what_goes_and_what_stays(make, left, compiled):
    x = tf.placeholder(tf.float32, [2, 3])
    y = make(x)
    feed = {x: np.arange(6).reshape(2, 3)}
    with tf.Session() as session:
        assert kinds(compiled(session, y, feed)) in (
            left,
            [o.replace("Add", "AddV2") for o in left],
        )
        assert session.run(y, feed).shape == tuple(y.shape.as_list())


def test_integer_zero_is_neutral(compiled):
    x = tf.placeholder(tf.int32, [2])
    with tf.Session() as session:
        assert kinds(compiled(session, x + 0, {x: [1, 2]})) == []
        assert kinds(compiled(session, 0 + x, {x: [1, 2]})) == []
        assert kinds(compiled(session, 0 - x, {x: [1, 2]})) == ["Sub"]


@pytest.mark.parametrize("shape", [(3, 4), (300, 400)])
def test_the_ones_that_the_gradient_of_a_sum_begins_with(shape, compiled):
    """As a constant where they are few, broadcast where they are many."""
    x, y = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
    dx, dy = tf.gradients(tf.reduce_sum(x * y), [x, y])
    feed = {x: np.full(shape, 2.0), y: np.full(shape, 3.0)}
    with tf.Session() as session:
        ops = {n.op for n in compiled(session, [dx, dy], feed).block.nodes}
        assert "Mul" not in ops and "BroadcastTo" not in ops
        values = session.run([dx, dy], feed)
    assert [v.shape for v in values] == [shape] * 2 and [v.mean() for v in values] == [3.0, 2.0]


def test_numbers_of_which_one_differs_are_not_neutral(compiled):
    x = tf.placeholder(tf.float32, [2, 2])
    for number in (np.array([[1, 1], [1, 2]]), np.array([[1.0, np.nan], [1, 1]])):
        y = x * tf.constant(number, tf.float32)
        with tf.Session() as session:
            got = session.run(y, {x: np.ones((2, 2))})
        np.testing.assert_array_equal(got, number.astype(np.float32))


def test_what_waits_for_an_effect_stays():
    v = tf.Variable(0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([v.assign_add(1)]):
        y = tf.identity(x)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y * 1.0, {x: 2.0}) == 2
        assert session.run(v) == 1


def test_a_control_on_a_removed_node_is_a_control_on_its_input():
    v = tf.Variable(0)
    write = v.assign_add(1)
    with tf.control_dependencies([tf.identity(write)]):
        read = v.read_value() + 0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(read) == 1


def test_a_simplified_fetch_is_a_copy_of_the_feed():
    x = tf.placeholder(tf.float32, [3])
    fed = np.ones(3, np.float32)
    with tf.Session() as session:
        got = session.run(x * 1.0, {x: fed})
        got[:] = 7
        assert list(fed) == [1, 1, 1]
        fed[:] = 9
        assert list(got) == [7, 7, 7]


def test_a_broadcast_to_what_does_not_fit_fails():
    """What is fed says which shape comes out, but not that the shape asked for is that one."""
    x, shape = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    y = tf.broadcast_to(x, shape)
    with tf.Session() as s:
        feeds = {x: np.ones((2, 3), np.float32)}
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2,3\] vs. \[4,3\]"):
            s.run(y, {**feeds, shape: [4, 3]})
        assert s.run(y, {**feeds, shape: [2, 3]}).shape == (2, 3)
