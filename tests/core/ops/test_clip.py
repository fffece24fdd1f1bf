"""Clipping by value and by norm."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.clip import clip_by_value_op


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def rows():
    return tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]), tf.constant([2, 2]))


def test_by_value():
    out = tf.clip_by_value([-3.0, 0.5, 3.0], -1.0, 2.0)
    assert out.op.name == "clip_by_value" and out.op.type == "Maximum"
    assert run(out).tolist() == [-1.0, 0.5, 2.0]
    assert run(tf.clip_by_value(rows(), 0.0, 3.5).values).tolist() == [[3.0, 3.5]]
    with pytest.raises(ValueError, match="equal rank"):
        tf.clip_by_value(tf.zeros([2]), tf.zeros([3, 2]), 1.0)


def test_the_gradient_of_the_single_node_reaches_the_limits():
    t, low, high = tf.constant([-3.0, 0.5, 3.0, 4.0]), tf.constant(-1.0), tf.constant(2.0)
    grads = run(tf.gradients(clip_by_value_op(t, low, high), [t, low, high]))
    assert grads[0].tolist() == [0, 1, 0, 0] and grads[1] == 1 and grads[2] == 2


def test_by_norm():
    out = tf.clip_by_norm(tf.constant([3.0, 4.0]), 1.0)
    np.testing.assert_allclose(run(out), [0.6, 0.8], rtol=1e-6)
    assert run(tf.clip_by_norm([0.3, 0.4], 1.0)).tolist() == pytest.approx([0.3, 0.4])
    np.testing.assert_allclose(
        run(tf.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], 1.0, axes=[1])), [[0.6, 0.8], [0.3, 0.4]],
        rtol=1e-6,
    )  # fmt: skip
    assert isinstance(tf.clip_by_norm(rows(), 1.0), tf.IndexedSlices)


def test_the_norm_of_zeros_has_a_finite_gradient():
    x = tf.zeros([3])
    assert run(tf.gradients(tf.clip_by_norm(x, 1.0), x)[0]).tolist() == [1.0, 1.0, 1.0]


def test_by_average_norm():
    got = run(tf.clip_by_average_norm(tf.constant([3.0, 4.0]), 0.5))
    np.testing.assert_allclose(got, np.array([3, 4]) * 0.5 * min(2 / 5, 1 / 0.5), rtol=1e-6)


def test_global_norm():
    norm = tf.global_norm([tf.constant([3.0]), None, rows()])
    assert norm.op.name == "global_norm/global_norm"
    assert run(norm) == pytest.approx(np.sqrt(9 + 25))
    for bad in (tf.constant([1.0]), "text"):
        with pytest.raises(TypeError, match="should be a sequence"):
            tf.global_norm(bad)


def test_by_global_norm():
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0, 0.0]), None, rows()], 1.0)
    assert clipped[1] is None and isinstance(clipped[2], tf.IndexedSlices)
    assert clipped[0].op.name == "clip_by_global_norm/clip_by_global_norm/_0"
    size = np.sqrt(34)
    np.testing.assert_allclose(run(clipped[0]), [3 / size, 0], rtol=1e-6)
    np.testing.assert_allclose(run(clipped[2].values), [[3 / size, 4 / size]], rtol=1e-6)
    assert run(norm) == pytest.approx(size)


def test_a_norm_that_is_not_finite_shows_in_every_value():
    clipped, _ = tf.clip_by_global_norm([tf.constant([np.inf, 1.0]), tf.constant([2.0])], 1.0)
    assert all(np.isnan(v).all() for v in run(clipped))


def test_a_norm_that_is_known_already():
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0])], 1.0, use_norm=tf.constant(6.0))
    assert run(clipped[0]).tolist() == [0.5] and run(norm) == 6.0
