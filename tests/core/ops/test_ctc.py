"""CTC: the loss's gradient, batch-first input, and decoding."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_error


def labels():
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([0, 1, 1]), [2, 2])


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def test_gradient_of_the_loss():
    x = tf.placeholder(tf.float64, [4, 2, 3])
    loss = tf.nn.ctc_loss(labels(), x, [4, 3])
    with tf.Session():
        error = compute_gradient_error(x, [4, 2, 3], loss, [2], draw(4, 2, 3), delta=1e-5)
    assert error < 1e-7


def test_batch_first():
    x = draw(4, 2, 3)
    with tf.Session() as session:
        a, b = session.run([
            tf.nn.ctc_loss(labels(), tf.constant(x), [4, 3]),
            tf.nn.ctc_loss(labels(), x.transpose(1, 0, 2), [4, 3], time_major=False),
        ])  # fmt: skip
    np.testing.assert_allclose(a, b)


def test_no_second_derivative():
    x = tf.constant(draw(4, 2, 3))
    (grad,) = tf.gradients(tf.nn.ctc_loss(labels(), x, [4, 3]), x)
    with pytest.raises(LookupError, match="ctc_loss"):
        tf.gradients(grad, x)


def test_labels_must_be_sparse():
    with pytest.raises(TypeError, match="to be a SparseTensor"):
        tf.nn.ctc_loss(tf.zeros([2, 2], tf.int32), tf.zeros([4, 2, 3]), [4, 3])


def test_greedy_decoder():
    path = np.eye(3)[[0, 0, 2, 0, 1]][:, None] * 5
    with tf.Session() as session:
        for merge, want in ((True, [0, 0, 1]), (False, [0, 0, 0, 1])):
            (decoded,), score = tf.nn.ctc_greedy_decoder(tf.constant(path), [5], merge)
            values, total = session.run([decoded.values, score])
            assert values.tolist() == want and total.tolist() == [[-25.0]]
