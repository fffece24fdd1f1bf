"""Tensor arrays in XLA programs: with loops, branches and gradients, and what stays outside."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from tests.plugins.jax.test_segments import DEVICE, segments

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)


def mapped(x):
    return tf.map_fn(lambda row: row * tf.reduce_sum(row), x)


def scanned(x):
    return tf.scan(lambda a, row: a * 0.5 + row * row, x)


def recurrent(x):
    with tf.variable_scope("r", initializer=tf.constant_initializer(0.1)):
        cell = tf.nn.rnn_cell.BasicRNNCell(3)
        inputs = tf.stack([x, x * 2])
        return tf.nn.dynamic_rnn(cell, inputs, sequence_length=[4, 6], dtype=tf.float32)[0]


def chosen(x):
    """Written in a branch, by turns, and read in another loop."""
    array = tf.TensorArray(tf.float32, 6)

    def turn(i, array):
        return i + 1, tf.cond(
            x[i, 0] > 0, lambda: array.write(i, x[i]), lambda: array.write(i, x[i] * 2)
        )

    _, array = tf.while_loop(lambda i, _: i < 6, turn, [0, array])
    return tf.while_loop(
        lambda i, _: i < 6, lambda i, y: (i + 1, y * 0.5 + array.read(5 - i)), [0, x[0] * 0.0]
    )[1]


def joined(x):
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).split(x, [2, 2, 2])
    return array.concat() + tf.reduce_sum(x)


def kept(x):
    array = tf.TensorArray(tf.float32, 6, clear_after_read=False).unstack(x)
    other = tf.TensorArray(tf.float32, 3).scatter([0, 2], x[:2]).write(1, x[3])
    return array.read(1) * array.read(1) + other.stack()[0]


def run(build, device):
    """The results, their gradient, and the sizes of the segments."""
    with tf.Graph().as_default(), tf.device(device):
        x = tf.placeholder(tf.float32, X.shape)
        y = build(x)
        fetches = [y, *tf.gradients(tf.reduce_sum(y * y), x)]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return sess.run(fetches, {x: X}), segments(sess, fetches, {x: X})


def compare(values, expected):
    for value, right in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", [mapped, scanned, recurrent, chosen])
def test_loops_over_elements_are_one_program_and_so_are_their_gradients(build):
    values, found = run(build, DEVICE)
    assert len(found) == 1
    compare(values, run(build, "/cpu:0")[0])


@pytest.mark.parametrize("build", [joined, kept])
def test_elements_are_put_and_taken_together(build):
    values, found = run(build, DEVICE)
    assert found
    compare(values, run(build, "/cpu:0")[0])


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda array, i: array.write(i, [1.0]).write(i, [2.0]).stack(), "already been written"),
        (lambda array, i: array.write(i + 9, [1.0]).stack(), "Tried to write to index"),
        (lambda array, i: array.read(i), "Could not read from TensorArray index"),
        (lambda array, i: _twice(array.write(i, [1.0]), i), "Could not read index . twice"),
    ],
)
def test_a_wrong_use_is_the_kernels_own_error(use, told):
    with tf.Graph().as_default(), tf.device(DEVICE):
        i = tf.placeholder(tf.int32, [])
        y = use(tf.TensorArray(tf.float32, 2), i)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=told):
            sess.run(y, {i: 1})


def _twice(array, i):
    first = array.read(i)
    with tf.control_dependencies([first]):
        return first + array.read(i)


def test_what_grows_or_is_seen_from_outside_runs_op_by_op():
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [4])
        growing = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        _, growing = tf.while_loop(
            lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, x * 2.0)), [0, growing]
        )
        seen = tf.TensorArray(tf.float32, 2).write(0, x)
        with tf.device("/cpu:0"):
            elsewhere = seen.read(0) + 1.0
        with tf.Session() as sess:
            stacked, one = sess.run([growing.stack(), elsewhere], {x: X[0]})
    np.testing.assert_array_equal(stacked, [X[0] * 2] * 3)
    np.testing.assert_array_equal(one, X[0] + 1)
