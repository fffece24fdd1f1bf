"""Grey, YIQ and YUV."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_there_and_back():
    rgb = np.random.default_rng(0).random((2, 5, 4, 3))
    for there, back in (
        (tf.image.rgb_to_yiq, tf.image.yiq_to_rgb),
        (tf.image.rgb_to_yuv, tf.image.yuv_to_rgb),
    ):
        turned = there(rgb)
        luma = rgb @ np.array([0.299, 0.587, 0.114])
        np.testing.assert_allclose(run(turned)[..., 0], luma, rtol=1e-6)
        np.testing.assert_allclose(run(back(turned)), rgb, atol=1e-4)


def test_grey_and_back():
    rgb = np.array([[[100, 200, 50]]], np.uint8)
    grey = tf.image.rgb_to_grayscale(rgb)
    assert grey.shape.as_list() == [1, 1, 1]
    assert run(grey).tolist() == [[[153]]]
    again = tf.image.grayscale_to_rgb(grey)
    assert again.shape.as_list() == [1, 1, 3]
    assert run(again).tolist() == [[[153] * 3]]
    unknown = tf.placeholder(tf.uint8, [None, None, None])
    out = tf.image.grayscale_to_rgb(unknown)
    assert out.shape.as_list() == [None, None, 3]
    with pytest.raises(ValueError, match="Last dimension of a grayscale image should be size 1"):
        tf.image.grayscale_to_rgb(rgb)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Last dimension of a grayscale"):
        run(out, {unknown: rgb})
