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


def test_complex_numbers_are_two_reals():
    x = tf.constant(11 - 13j, tf.complex128)
    with tf.Session():
        theory, numbers = tf.test.compute_gradient(x, (), (5 + 7j) * x, ())
        np.testing.assert_array_equal(theory, [[5, 7], [-7, 5]])
        np.testing.assert_allclose(numbers, theory, rtol=1e-9)
        assert tf.test.compute_gradient_error(x, (), tf.conj(x), ()) < 1e-9
        theory, numbers = tf.test.compute_gradient(x, (), tf.real(x), ())
        assert theory.shape == numbers.shape == (2, 1)


def test_the_start_is_numpy_s():
    x = tf.placeholder_with_default(np.zeros(3), [3])
    with tf.Session():
        np.random.seed(7)
        first = tf.test.compute_gradient(x, [3], x * x, [3])[0]
    want = 2 * np.random.RandomState(7).random_sample(3)
    np.testing.assert_array_equal(np.diagonal(first), want)


@tf.RegisterGradient("TestCheckerTransposed")
def _transposed(op, grad):
    return tf.transpose(grad)


def test_jacobians_without_elements():
    x = tf.placeholder(tf.float32)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestCheckerTransposed"}):
        y = tf.identity(x)
    wrong = r"Empty gradient has wrong shape: expected \(0, 3\), got \(3, 0\)"
    w = tf.placeholder_with_default(np.ones(3), [3])
    with tf.Session():
        with pytest.raises(ValueError, match=wrong):
            tf.test.compute_gradient(x, (0, 3), y, (0, 3))
        theory, numbers = tf.test.compute_gradient(w, [3], w[:0], [0])
        assert theory.shape == numbers.shape == (3, 0)
        empty = tf.placeholder_with_default(np.ones((0, 3)), [0, 3])
        theory, numbers = tf.test.compute_gradient(empty, [0, 3], tf.reduce_sum(empty, 0), [3])
        assert theory.shape == numbers.shape == (0, 3)


def test_empty_tensors_and_missing_sessions():
    x = tf.placeholder_with_default(np.zeros((0, 2), np.float32), [0, 2])
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [0, 2], x * 2.0, [0, 2]) == 0
    with pytest.raises(ValueError, match="session"):
        tf.test.compute_gradient_error(x, [0, 2], x * 2.0, [0, 2])


def test_a_sum_whose_shape_is_given_as_one_number():
    x = tf.constant([1.0, 2.0])
    loss = tf.reduce_sum(tf.square(x)) + tf.reduce_sum(x)
    with tf.Session():
        theory, numbers = tf.test.compute_gradient(x, [2], loss, [1], np.float32([1, 2]))
    np.testing.assert_allclose(theory, [[3], [5]])
    np.testing.assert_allclose(numbers, theory, rtol=1e-2)


def test_a_bias_of_no_images():
    images = tf.zeros([4, 0, 2, 2])
    for data_format, channels in (("NCHW", 0), ("NHWC", 2)):
        bias = tf.zeros([channels])
        y = tf.nn.bias_add(images, bias, data_format=data_format)
        with tf.Session() as sess:
            assert sess.run(tf.gradients(y, bias)[0]).tolist() == [0] * channels


def test_slices_as_an_array():
    to_numpy = tf.python.ops.gradient_checker_v2._to_numpy
    x = tf.constant([1.0, 2.0, 3.0])
    grad = tf.gradients(tf.gather(x, [2, 0, 2]), x)[0]
    with tf.Session() as session:
        np.testing.assert_array_equal(to_numpy(session.run(grad)), [1, 0, 2])
        np.testing.assert_array_equal(to_numpy(tf.square(x)), [1, 4, 9])
    assert to_numpy(5) == 5
