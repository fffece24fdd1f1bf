"""`tf.test.compute_gradient` and `compute_gradient_error`."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_a_right_gradient():
    x = tf.placeholder_with_default(np.zeros((2, 3), np.float32), [2, 3])
    y = tf.matmul(tf.tanh(x), x, transpose_b=True)
    start = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [2, 3], y, [2, 2], x_init_value=start) < 1e-2
        theory, numbers = tf.test.compute_gradient(x, [2, 3], y, [2, 2], x_init_value=start)
    assert theory.shape == numbers.shape == (6, 4)


def test_a_wrong_gradient_is_noticed():
    @tf.custom_gradient
    def lie(x):
        return x * x, lambda dy: dy

    x = tf.placeholder_with_default(np.zeros(2, np.float64), [2])
    with tf.Session():
        error = tf.test.compute_gradient_error(x, [2], lie(x), [2], x_init_value=np.array([3.0, 4]))
    assert error == pytest.approx(7, abs=1e-3)


def test_lists():
    a, b = (tf.placeholder_with_default(np.ones(2), [2]) for _ in range(2))
    with tf.Session():
        found = tf.test.compute_gradient([a, b], [[2], [2]], a * b, [2])
        assert len(found) == 2
        assert tf.test.compute_gradient_error([a, b], [[2], [2]], a * b, [2]) < 1e-6


def test_empty_tensors_and_missing_sessions():
    x = tf.placeholder_with_default(np.zeros((0, 2), np.float32), [0, 2])
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [0, 2], x * 2.0, [0, 2]) == 0
    with pytest.raises(ValueError, match="session"):
        tf.test.compute_gradient_error(x, [0, 2], x * 2.0, [0, 2])
