"""Batch normalization: statistics, arguments, gradients once and twice; response normalization."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_error


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_training_statistics(data_format):
    x = draw(4, 3, 3, 3) * 2 + 1
    axes = (0, 1, 2) if data_format == "NHWC" else (0, 2, 3)
    y, mean, variance = tf.nn.fused_batch_norm(
        x, tf.ones([3]), tf.zeros([3]), epsilon=1e-3, data_format=data_format
    )
    assert y.op.name == "FusedBatchNormV3" and y.op.type == "FusedBatchNormV3"
    y, mean, variance = run([y, mean, variance])
    np.testing.assert_allclose(mean, x.mean(axis=axes), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, x.var(axis=axes, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(y.mean(axis=axes), 0, atol=1e-5)
    np.testing.assert_allclose(y.std(axis=axes), 1, atol=1e-2)


def test_arguments():
    x, v = tf.zeros([1, 2, 2, 3]), tf.zeros([3])
    with pytest.raises(ValueError, match="must be None if is_training is True"):
        tf.nn.fused_batch_norm(x, v, v, v, v)
    with pytest.raises(ValueError, match="must be given if is_training is False"):
        tf.nn.fused_batch_norm(x, v, v, is_training=False)
    y, _, _ = tf.nn.fused_batch_norm(x, v, v, epsilon=0.0)
    assert y.op.get_attr("epsilon") == pytest.approx(1.001e-5)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 4"):
        tf.nn.fused_batch_norm(x, tf.zeros([4]), v)


def plain(x, scale, offset, mean, variance, training, data_format):
    """Batch normalization in simple ops, to differentiate instead."""
    axes = [0, 1, 2] if data_format == "NHWC" else [0, 2, 3]
    if training:
        # Not tf.nn.moments: its stop_gradient makes second derivatives wrong, as in TensorFlow.
        mean = tf.reduce_mean(x, axes)
        square = tf.squared_difference(x, tf.reduce_mean(x, axes, keepdims=True))
        variance = tf.reduce_mean(square, axes)
    parts = [mean, variance, offset, scale]
    if data_format == "NCHW":
        parts = [tf.reshape(p, [1, -1, 1, 1]) for p in parts]
    return tf.nn.batch_normalization(x, *parts, 1e-2)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_first_and_second_derivatives(training, data_format):
    shape = (2, 3, 2, 2) if data_format == "NHWC" else (2, 2, 3, 2)
    x, scale, offset = (tf.constant(v) for v in (draw(*shape), draw(2), draw(2) + 1))
    given = (tf.constant([0.1, -0.2]), tf.constant([0.7, 1.3]))
    mean, variance = (None, None) if training else given
    fused, _, _ = tf.nn.fused_batch_norm(
        x, scale, offset, mean, variance, 1e-2, data_format, training
    )
    simple = plain(x, scale, offset, *given, training, data_format)
    np.testing.assert_allclose(*run([fused, simple]), rtol=1e-4, atol=1e-5)
    weights = [tf.constant(draw(*s)) for s in (shape, (2,), (2,))]
    found = []
    for y in (fused, simple):
        grads = tf.gradients(tf.tanh(y), [x, scale, offset])
        loss = tf.add_n([tf.reduce_sum(g * w) for g, w in zip(grads, weights, strict=True)])
        found.append([*grads, *tf.gradients(loss, [x, scale, offset])])
    for got, want in zip(*run(found), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4)


def test_half_precision_is_computed_in_float32():
    x = (draw(2, 8, 8, 3) + 100).astype(np.float16)
    y, mean, _ = run(tf.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3])))
    assert y.dtype == np.float16 and mean.dtype == np.float32
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(axis=(0, 1, 2)), rtol=1e-5)


def test_long_sums_stay_accurate():
    x = np.random.default_rng(0).uniform(999, 1001, (8, 128, 128, 1)).astype(np.float32)
    images = tf.placeholder(tf.float32, x.shape)
    norm = tf.nn.fused_batch_norm(images, tf.ones([1]), tf.zeros([1]))
    with tf.Session() as session:
        _, mean, variance = session.run(norm, {images: x})
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(), rtol=1e-6)
    np.testing.assert_allclose(variance, x.astype(np.float64).var(ddof=1), rtol=1e-4)


def test_unfused_names_and_order():
    x, v = tf.zeros([1, 2, 2, 3]), tf.zeros([3])
    y = tf.nn.batch_normalization(x, v, v, v, v, 1e-3)
    assert y.op.name == "batchnorm/add_1"
    names = [op.name for op in tf.get_default_graph().get_operations() if "batchnorm" in op.name]
    assert names == [
        "batchnorm/add/y", "batchnorm/add", "batchnorm/Rsqrt", "batchnorm/mul", "batchnorm/mul_1",
        "batchnorm/sub", "batchnorm/mul_2", "batchnorm/add_1",
    ] or sorted(names) == sorted([
        "batchnorm/add/y", "batchnorm/add", "batchnorm/Rsqrt", "batchnorm/mul", "batchnorm/mul_1",
        "batchnorm/sub", "batchnorm/mul_2", "batchnorm/add_1",
    ])  # fmt: skip


def test_unfused_without_scale_and_offset():
    x = draw(2, 3)
    y = tf.nn.batch_normalization(tf.constant(x), 1.0, tf.constant(4.0), None, None, 0.0)
    np.testing.assert_allclose(run(y), (x - 1) / 2, rtol=1e-6)


def test_local_response_normalization_gradient():
    x = tf.placeholder(tf.float32, [1, 2, 2, 5])
    y = tf.nn.lrn(x, 2, 1.0, 0.4, 0.7)
    assert y.op.name == "LRN"
    with tf.Session():
        error = compute_gradient_error(x, [1, 2, 2, 5], y, [1, 2, 2, 5], draw(1, 2, 2, 5))
    assert error < 1e-2


def test_old_op_has_the_gradients_of_its_formula():
    values = [draw(2, 3, 2, 3), draw(3), np.abs(draw(3)) + 0.5, draw(3), draw(3)]
    inputs = [tf.placeholder(tf.float32, v.shape) for v in values]
    t, m, v, beta, gamma = inputs
    for scaled in (True, False):
        old = tf.raw_ops.BatchNormWithGlobalNormalization(
            t=t, m=m, v=v, beta=beta, gamma=gamma, variance_epsilon=1e-3,
            scale_after_normalization=scaled,
        )  # fmt: skip
        new = tf.nn.batch_norm_with_global_normalization(t, m, v, beta, gamma, 1e-3, scaled)
        assert old.shape == new.shape
        among = inputs if scaled else inputs[:4]
        both = [tf.gradients(y, among, tf.cos(y)) for y in (old, new)]
        with tf.Session() as session:
            got, want = session.run(both, dict(zip(inputs, values, strict=True)))
        for mine, theirs in zip(got, want, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
