"""Activations, bias, dropout and the elementwise losses: names, arguments, second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_error


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_default_names():
    x = tf.constant([[0.5, -0.5]])
    for function, name in (
        (tf.nn.relu, "Relu"), (tf.nn.relu6, "Relu6"), (tf.nn.elu, "Elu"), (tf.nn.selu, "Selu"),
        (tf.nn.leaky_relu, "LeakyRelu"), (tf.nn.softplus, "Softplus"), (tf.nn.crelu, "CRelu/Relu"),
        (tf.nn.softsign, "Softsign"), (tf.nn.l2_loss, "L2Loss"),
    ):  # fmt: skip
        assert function(x).op.name == name
    assert tf.nn.relu(x, name="mine").op.name == "mine"
    assert tf.nn.bias_add(x, [1.0, 2.0]).op.name == "BiasAdd"
    assert tf.nn.xw_plus_b(x, [[1.0], [2.0]], [0.0]).op.name == "xw_plus_b"
    assert tf.nn.relu_layer(x, [[1.0], [2.0]], [0.0]).op.name == "relu_layer"


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_the_slope_of_leaky_relu_has_the_type_of_its_features(dtype):
    x = np.array([-9, 7, -5, 3, -1]).astype(dtype.as_numpy_dtype)
    slope = np.array(0.2).astype(x.dtype)
    features = tf.placeholder(dtype, [5])
    y = tf.nn.leaky_relu(features, 0.2)
    with tf.Session() as sess:
        got, grad = sess.run([y, tf.gradients(y, features)[0]], {features: x})
    np.testing.assert_array_equal(got, np.maximum(x, slope * x))
    np.testing.assert_array_equal(grad, np.where(x > 0, x.dtype.type(1), slope))


def test_leaky_relu_casts_integers_and_takes_array_slopes():
    out = tf.nn.leaky_relu(tf.constant([-10, 10]), alpha=np.array(0.5))
    assert out.dtype == tf.float32
    assert run(out).tolist() == [-5.0, 10.0]


def test_crelu_doubles_the_axis():
    x = tf.constant([[1.0, -2.0]])
    assert run(tf.nn.crelu(x)).tolist() == [[1.0, 0.0, 0.0, 2.0]]
    assert tf.nn.crelu(x, axis=0).shape.as_list() == [2, 2]


@pytest.mark.parametrize("name", ["relu", "relu6", "elu", "selu", "softplus", "softsign", "swish"])
def test_second_derivatives(name):
    x = tf.placeholder(tf.float64, [6])
    at = np.array([-2.0, -0.7, -0.2, 0.3, 1.1, 4.0])
    first = tf.gradients(getattr(tf.nn, name)(x), x)[0]
    with tf.Session():
        assert compute_gradient_error(x, [6], first, [6], at, delta=1e-5) < 1e-7


def test_third_derivative_of_softplus():
    x = tf.placeholder(tf.float64, [3])
    second = tf.gradients(tf.gradients(tf.nn.softplus(x), x)[0], x)[0]
    at = np.array([-1.0, 0.2, 2.0])
    with tf.Session():
        assert compute_gradient_error(x, [3], second, [3], at, delta=1e-5) < 1e-7


# ---------------------------------------------------------------- bias
def test_bias_formats():
    x = tf.zeros([1, 2, 2, 3])
    assert run(tf.nn.bias_add(x, [1.0, 2.0, 3.0], "NHWC"))[0, 0, 0].tolist() == [1.0, 2.0, 3.0]
    assert run(tf.nn.bias_add(x, [1.0, 2.0], "NCHW"))[0, :, 0, 0].tolist() == [1.0, 2.0]
    volume = tf.nn.bias_add(tf.zeros([1, 2, 2, 2, 3]), [1.0, 2.0], "NCDHW")
    assert volume.op.get_attr("data_format") == b"NCHW"
    assert run(volume)[0, :, 0, 0, 0].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"must be of the form"):
        tf.nn.bias_add(x, [1.0, 2.0], "CHWN")


def test_bias_errors_name_op_shapes_and_sizes():
    with pytest.raises(ValueError, match=r"3 and 4 for 'BiasAdd'.*\[2,3\], \[4\]"):
        tf.nn.bias_add(tf.zeros([2, 3]), tf.zeros([4]))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_second_derivative_of_bias(data_format):
    b = tf.placeholder(tf.float64, [2])
    shape = [1, 2, 3, 2] if data_format == "NHWC" else [1, 2, 3, 3]
    y = tf.nn.bias_add(tf.ones(shape, tf.float64), b, data_format)
    first = tf.gradients(y * y, b)[0]
    with tf.Session():
        assert compute_gradient_error(b, [2], first, [2], [1.0, 2.0]) < 1e-6


def test_bias_gradient_of_unknown_rank():
    x, b = tf.placeholder(tf.float32), tf.constant([1.0, 2.0])
    (grad,) = tf.gradients(tf.nn.bias_add(x, b), b)
    assert run(grad, {x: np.zeros((3, 4, 2))}).tolist() == [12.0, 12.0]


# ---------------------------------------------------------------- dropout
def test_dropout_keeps_or_scales():
    y = run(tf.nn.dropout(tf.ones([100, 100]), rate=0.25, seed=1))
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02


def test_dropout_without_anything_to_drop_is_its_input():
    x = tf.ones([3])
    assert tf.nn.dropout(x, keep_prob=1.0) is x
    assert tf.nn.dropout(x, rate=tf.constant(0.0)) is x


def test_dropout_noise_shape_ties_elements():
    y = run(tf.nn.dropout(tf.ones([4, 8]), rate=0.5, noise_shape=[None, 1], seed=3))
    assert all(len(set(row)) == 1 for row in y.tolist())


def test_dropout_arguments():
    x = tf.ones([3])
    with pytest.raises(ValueError, match="must provide a rate"):
        tf.nn.dropout(x)
    with pytest.raises(ValueError, match="Cannot specify both 'keep_prob' and 'rate'"):
        tf.nn.dropout(x, keep_prob=0.5, rate=0.5)
    with pytest.raises(ValueError, match=r"in the range \[0, 1\), got 1.5"):
        tf.nn.dropout(x, rate=1.5)
    with pytest.raises(ValueError, match="floating point tensor"):
        tf.nn.dropout(tf.constant([1]), rate=0.5)


# ---------------------------------------------------------------- losses on logits
def test_sigmoid_cross_entropy_is_stable():
    x = tf.constant([-1000.0, 0.0, 1000.0])
    z = tf.constant([0.0, 1.0, 1.0])
    out = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    assert out.op.name == "logistic_loss"
    np.testing.assert_allclose(run(out), [0.0, np.log(2.0), 0.0], rtol=1e-6)


def test_losses_want_names_and_equal_shapes():
    x = tf.zeros([3])
    with pytest.raises(ValueError, match="named arguments"):
        tf.nn.sigmoid_cross_entropy_with_logits(x, x)
    with pytest.raises(ValueError, match="must have the same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.zeros([2]), logits=x)
    with pytest.raises(ValueError, match="Cannot specify both 'targets' and 'labels'"):
        tf.nn.weighted_cross_entropy_with_logits(labels=x, targets=x, logits=x, pos_weight=1.0)


def test_weighted_cross_entropy_with_weight_one_is_the_plain_one():
    x, z = tf.constant([-2.0, 0.5, 3.0]), tf.constant([0.0, 0.3, 1.0])
    plain = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    weighted = tf.nn.weighted_cross_entropy_with_logits(z, x, 1.0)
    a, b = run([plain, weighted])
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_in_top_k_takes_a_tensor():
    hits = tf.nn.in_top_k([[1.0, 2.0, 3.0]] * 2, [0, 1], tf.constant(2))
    assert hits.op.name == "in_top_k/InTopKV2"
    assert run(hits).tolist() == [False, True]
