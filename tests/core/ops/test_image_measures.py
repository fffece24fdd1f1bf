"""Edges, variation and the likeness of images."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

IMAGE = np.random.default_rng(0).random((2, 176, 180, 3), np.float32)


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_differences():
    x = tf.constant(IMAGE[:, :6, :5])
    down, right = np.diff(IMAGE[:, :6, :5], axis=1), np.diff(IMAGE[:, :6, :5], axis=2)
    dy, dx = run(tf.image.image_gradients(x))
    np.testing.assert_allclose(dy[:, :-1], down, rtol=1e-6)
    np.testing.assert_allclose(dx[:, :, :-1], right, rtol=1e-6)
    assert not dy[:, -1].any()
    want = np.abs(down).sum(axis=(1, 2, 3)) + np.abs(right).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(run(tf.image.total_variation(x)), want, rtol=1e-5)
    assert run(tf.image.total_variation(x[0])) == pytest.approx(want[0], rel=1e-5)
    with pytest.raises(ValueError, match="must be either 3 or 4-dimensional"):
        tf.image.total_variation(tf.zeros([2, 2]))


def test_sobel():
    ramp = np.broadcast_to(np.arange(6, dtype=np.float32)[None, None, :, None], (1, 5, 6, 2))
    edges = tf.image.sobel_edges(tf.constant(ramp))
    assert edges.shape.as_list() == [1, 5, 6, 2, 2]
    got = run(edges)
    assert not got[..., 0].any()
    assert (got[:, :, 1:-1, :, 1] == 8).all()
    assert not got[:, :, [0, -1], :, 1].any()


def test_psnr():
    a, b = np.zeros((2, 4, 4, 3), np.uint8), np.full((2, 4, 4, 3), 16, np.uint8)
    want = 20 * np.log10(255 / 16)
    np.testing.assert_allclose(run(tf.image.psnr(a, b, 255)), [want] * 2, rtol=1e-5)
    assert np.isinf(run(tf.image.psnr(a, a, 255))).all()


def test_likeness_is_one_for_equal_images_and_less_for_others():
    worse = np.clip(IMAGE + 0.2 * np.random.default_rng(1).random(IMAGE.shape, np.float32), 0, 1)
    for measure in (tf.image.ssim, tf.image.ssim_multiscale):
        same, less = run([measure(IMAGE, IMAGE, 1.0), measure(IMAGE, worse, 1.0)])
        np.testing.assert_allclose(same, 1, rtol=1e-5)
        assert less.shape == (2,)
        assert (less < 0.999).all()
    # One image beside many.
    both = run(tf.image.ssim(IMAGE[:1], worse, 1.0))
    assert both.shape == (2,)


def test_ssim_by_its_formula():
    a, b = (np.random.default_rng(i).random((11, 11, 1)) for i in (3, 4))
    at = np.arange(11) - 5
    window = np.exp(-(at[:, None] ** 2 + at**2) / (2 * 1.5**2))
    window = (window / window.sum())[..., None]
    mean_a, mean_b = (window * a).sum(), (window * b).sum()
    var_a, var_b = ((window * x * x).sum() - m * m for x, m in ((a, mean_a), (b, mean_b)))
    common = (window * a * b).sum() - mean_a * mean_b
    want = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
    want *= (2 * common + 9e-4) / (var_a + var_b + 9e-4)
    got = run(tf.image.ssim(tf.constant(a, tf.float32), tf.constant(b, tf.float32), 1.0))
    assert got == pytest.approx(want, rel=1e-4)


def test_images_that_cannot_be_compared():
    with pytest.raises(ValueError, match="incompatible"):
        tf.image.ssim(IMAGE, IMAGE[:, :-1], 1.0)
    with pytest.raises(ValueError, match="Two images are not compatible"):
        tf.image.ssim(IMAGE, np.concatenate([IMAGE, IMAGE[:1]]), 1.0)
    small = tf.placeholder(tf.float32, [None, None, None, 3])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.image.ssim(small, small, 1.0), {small: IMAGE[:, :5]})  # smaller than the window
