"""Colours: HSV there and back, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_there_and_back():
    rgb = np.random.default_rng(3).random((2, 9, 8, 3), np.float32)
    back = run(tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(rgb)))
    np.testing.assert_allclose(back, rgb, atol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_the_gradient_has_the_type_of_the_image(dtype):
    rgb = tf.constant([[0.2, 0.5, 0.9], [0.6, 0.1, 0.3]], dtype)
    hsv = tf.image.rgb_to_hsv(rgb)
    (grad,) = tf.gradients(hsv[..., 2], rgb)
    assert grad.dtype == dtype
    assert run(tf.cast(grad, tf.float32)).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_grey_has_no_hue_and_black_no_gradient():
    rgb = tf.constant([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    hsv = tf.image.rgb_to_hsv(rgb)
    assert run(hsv).tolist() == [[0, 0, 0], [0, 0, 0.5]]
    (grad,) = tf.gradients(hsv[..., :2], rgb)
    assert np.isfinite(run(grad)).all()
    assert tf.gradients(tf.image.hsv_to_rgb(rgb), rgb) == [None]
