"""Pooling: arguments, names, ties, windows over channels, second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_error


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def spread(*shape):
    count = int(np.prod(shape))
    return np.random.default_rng(count).permutation(count).reshape(shape) / 4.0


def test_names_and_arguments():
    x = tf.zeros([1, 4, 4, 2])
    y = tf.nn.max_pool(x, 2, 2, "SAME")
    assert y.op.name == "MaxPool" and y.op.get_attr("ksize") == [1, 2, 2, 1]
    assert tf.nn.avg_pool(x, [2, 2], [1, 2, 2, 1], "VALID").op.name == "AvgPool"
    assert tf.nn.max_pool2d(x, 2, 2, "SAME").op.name == "MaxPool2d"
    assert tf.nn.max_pool1d(x[0], 2, 2, "SAME").name == "MaxPool1d/Squeeze:0"
    assert tf.nn.max_pool(x, [1, 1, 2, 2], 1, "SAME", data_format="NCHW").shape == x.shape
    assert tf.nn.pool(x, [2, 2], "MAX", "SAME").op.name == "max_pool"
    assert tf.nn.max_pool_v2(x[0], 2, 2, "SAME").shape.as_list() == [4, 2, 2]
    with pytest.raises(ValueError, match="ksize cannot be zero"):
        tf.nn.max_pool(x, [1, 0, 2, 1], 1, "SAME")
    with pytest.raises(ValueError, match="Cannot specify both 'value' and 'input'"):
        tf.nn.max_pool(x, 2, 2, "SAME", input=x)
    with pytest.raises(ValueError, match="2-D SUM pooling is not supported"):
        tf.nn.pool(x, [2, 2], "SUM", "SAME")
    with pytest.raises(ValueError, match="strides > window_shape not supported"):
        tf.nn.pool(x, [2, 2], "MAX", "SAME", strides=[3, 3])
    with pytest.raises(ValueError, match="not implemented for dilation_rate > 1"):
        tf.nn.pool(x, [2, 2], "MAX", "SAME", dilation_rate=[2, 2])
    with pytest.raises(ValueError, match="other than 'NHWC'"):
        tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", data_format="NCHW")


def test_partly_known_shapes():
    x = tf.placeholder(tf.float32, [None, 7, None, 3])
    assert tf.nn.max_pool(x, 3, 2, "VALID").shape.as_list() == [None, 3, None, 3]
    dynamic = tf.raw_ops.MaxPoolV2(
        input=x, ksize=tf.placeholder(tf.int32, [4]), strides=[1, 1, 1, 1], padding="SAME"
    )
    assert dynamic.shape.as_list() == [None, None, None, None]


def test_only_the_first_of_equal_maxima_gets_the_gradient():
    x = tf.ones([1, 2, 2, 1])
    (grad,) = tf.gradients(tf.nn.max_pool(x, 2, 2, "VALID"), x)
    assert run(grad).reshape(-1).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_padding_never_wins_and_never_counts():
    x = -np.ones((1, 3, 3, 1), np.float32)
    assert run(tf.nn.max_pool(x, 2, 2, "SAME")).max() == -1
    assert run(tf.nn.avg_pool(x, 2, 2, "SAME")).reshape(-1).tolist() == [-1.0] * 4


def test_windows_over_channels():
    x = spread(1, 2, 2, 6).astype(np.float32)
    y = tf.nn.max_pool(x, [1, 1, 1, 3], [1, 1, 1, 3], "SAME")
    np.testing.assert_array_equal(run(y), x.reshape(1, 2, 2, 2, 3).max(axis=-1))
    both = tf.nn.max_pool(x, [1, 2, 2, 3], [1, 1, 1, 3], "SAME")
    with pytest.raises(tf.errors.UnimplementedError, match="exactly one of pooling across depth"):
        run(both)


def test_dilated_pooling():
    x = spread(1, 6, 5, 2)
    y = run(tf.nn.pool(x, [2, 2], "AVG", "VALID", dilation_rate=[2, 3]))
    want = (x[:, :-2, :-3] + x[:, 2:, :-3] + x[:, :-2, 3:] + x[:, 2:, 3:]) / 4
    np.testing.assert_allclose(y, want, rtol=1e-12)


def test_argmax_points_at_the_maximum():
    x = spread(2, 4, 5, 3)
    y, index = tf.nn.max_pool_with_argmax(
        x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", include_batch_in_index=True
    )
    value, flat = run([y, index])
    np.testing.assert_array_equal(x.reshape(-1)[flat], value)
    narrow = tf.nn.max_pool_with_argmax(
        x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", output_dtype=tf.int32
    )
    assert narrow.argmax.dtype == tf.int32


@pytest.mark.parametrize("function", ["max_pool", "avg_pool"])
def test_second_derivatives(function):
    x = tf.placeholder(tf.float64, [1, 4, 5, 1])
    y = getattr(tf.nn, function)(x, 3, 2, "SAME")
    first = tf.gradients(y * y * y, x)[0]
    with tf.Session():
        error = compute_gradient_error(
            x, [1, 4, 5, 1], first, [1, 4, 5, 1], spread(1, 4, 5, 1), delta=1e-4
        )
    assert error < 1e-3


def test_mismatched_gradient_shape_is_an_error():
    x, y, g = (tf.placeholder(tf.float32) for _ in range(3))
    grad = tf.raw_ops.MaxPoolGrad(
        orig_input=x, orig_output=y, grad=g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1],
        padding="SAME",
    )  # fmt: skip
    feeds = {x: np.zeros((1, 4, 4, 1)), y: np.zeros((1, 2, 2, 1)), g: np.zeros((1, 3, 2, 1))}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"grad has shape \[1, 3, 2, 1\]"):
        run(grad, feeds)


NAN, LOW = float("nan"), float("-inf")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("values", "counting"),
    [
        ([1, NAN, 3, 2, 5, 6, 7, NAN, 9], [1, 1, 7, 7]),
        ([NAN] * 9, [0, 1, 3, 4]),
        ([LOW] * 9, [0, 1, 3, 4]),
        ([NAN, 1, 2, 3, NAN, 4, 5, 6, NAN], [0, 4, 4, 4]),
        ([3, 3, 3, 3, 3, 3, 3, 4, 3], [0, 1, 7, 7]),
    ],
)
def test_which_element_of_a_window_counts(dtype, values, counting):
    """The first of the greatest: of nothing but NaN the first, as in TensorFlow."""
    x = tf.constant(np.array(values, dtype).reshape(1, 3, 3, 1))
    maxima, places = tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    back = np.bincount(counting, minlength=9)
    with tf.Session() as session:
        found, at, given, given_at = session.run(
            [maxima, places, tf.gradients(tf.nn.max_pool(x, 2, 1, "VALID"), x)[0],
             tf.gradients(maxima, x)[0]]
        )  # fmt: skip
    assert at.ravel().tolist() == counting
    np.testing.assert_array_equal(found.ravel(), np.array(values, dtype)[counting])
    np.testing.assert_array_equal(given.ravel(), back)
    np.testing.assert_array_equal(given_at.ravel(), back)


def test_padding_never_counts():
    x = tf.constant(np.full((1, 3, 3, 1), LOW, np.float32))
    y = tf.nn.max_pool(x, 3, 2, "SAME")
    with tf.Session() as session:
        found, given = session.run([y, tf.gradients(y, x)[0]])
    assert (found == LOW).all()
    assert given.ravel().tolist() == [1, 1, 0, 1, 1, 0, 0, 0, 0]
