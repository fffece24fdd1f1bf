"""Types of images, and adjustments by given and by random amounts."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


@pytest.mark.parametrize(
    ("value", "source", "target", "want"),
    [
        ([0, 128, 255], np.uint8, tf.float32, [0, 128 / 255, 1]),
        ([0.0, 0.5, 1.0], np.float32, tf.uint8, [0, 127, 255]),
        ([0, 255], np.uint8, tf.int16, [0, 255 * 128]),
        ([0, 32767], np.int16, tf.uint8, [0, 255]),
        ([0.25], np.float32, tf.float64, [0.25]),
        ([7], np.uint8, tf.uint8, [7]),
    ],
)
def test_ranges_are_scaled(value, source, target, want):
    out = run(tf.image.convert_image_dtype(np.array(value, source), target))
    assert out.dtype == target.as_numpy_dtype
    np.testing.assert_allclose(out, want, rtol=1e-6)


def test_what_does_not_fit_is_cut_off_on_request():
    image = np.array([-1.0, 2.0], np.float32)
    assert run(tf.image.convert_image_dtype(image, tf.uint8, saturate=True)).tolist() == [0, 255]
    with pytest.raises(AttributeError, match="dtype must be either floating point or integer"):
        tf.image.convert_image_dtype(image, tf.string)


def test_standardization():
    image = np.random.default_rng(0).integers(0, 255, (2, 6, 5, 3), np.uint8).astype(np.float32)
    out = run(tf.image.per_image_standardization(image))
    np.testing.assert_allclose(out.mean(axis=(1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(out.std(axis=(1, 2, 3)), 1, rtol=1e-5)
    # A uniform image is not divided by zero.
    flat = run(tf.image.per_image_standardization(np.full((4, 4, 1), 7, np.float32)))
    assert not flat.any()


def test_adjustments_keep_the_type():
    image = np.array([[[10, 100, 200]]], np.uint8)
    assert run(tf.image.adjust_brightness(image, 20 / 255)).tolist() == [[[30, 120, 220]]]
    assert run(tf.image.adjust_brightness(image, 1.0)).tolist() == [[[255, 255, 255]]]
    assert run(tf.image.adjust_contrast(image, 3.0)).tolist() == image.tolist()
    grey = run(tf.image.adjust_saturation(image, 0.0))
    assert np.ptp(grey) <= 1
    turned = run(tf.image.adjust_hue(image, 1 / 3)).astype(int)
    assert np.abs(turned - [[[200, 10, 100]]]).max() <= 1
    squared = run(tf.image.adjust_gamma(image, 2))
    np.testing.assert_allclose(squared, image.astype(float) ** 2 / 255, atol=1)


def test_gamma_is_not_negative():
    image = np.ones((1, 1, 3), np.float32)
    with pytest.raises(ValueError, match="Gamma should be a non-negative real number"):
        tf.image.adjust_gamma(image, -1)
    gamma = tf.placeholder(tf.float32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Gamma should be"):
        run(tf.image.adjust_gamma(image, gamma), {gamma: -1})


def test_random_amounts_are_uniform_numbers_of_the_seed():
    image = np.random.default_rng(1).random((3, 4, 3), np.float32)
    for random, plain, low, high in (
        (tf.image.random_brightness, tf.image.adjust_brightness, -0.2, 0.2),
        (tf.image.random_hue, tf.image.adjust_hue, -0.2, 0.2),
    ):
        drawn = tf.random_uniform([], low, high, seed=9)
        assert np.array_equal(*run([random(image, 0.2, seed=9), plain(image, drawn)]))
    for random, plain in (
        (tf.image.random_contrast, tf.image.adjust_contrast),
        (tf.image.random_saturation, tf.image.adjust_saturation),
    ):
        drawn = tf.random_uniform([], 0.3, 1.7, seed=9)
        assert np.array_equal(*run([random(image, 0.3, 1.7, seed=9), plain(image, drawn)]))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda x: tf.image.random_brightness(x, -1), "max_delta must be non-negative"),
        (lambda x: tf.image.random_hue(x, 0.6), "max_delta must be <= 0.5"),
        (lambda x: tf.image.random_contrast(x, 2, 1), "upper must be > lower"),
        (lambda x: tf.image.random_saturation(x, -1, 1), "lower must be non-negative"),
        (lambda x: tf.image.random_jpeg_quality(x, 0, 101), "between 0 and 100"),
        (lambda x: tf.image.random_jpeg_quality(x, 9, 9), "must be less than"),
    ],
)
def test_ranges_that_are_none(make, problem):
    with pytest.raises(ValueError, match=problem):
        make(np.zeros((2, 2, 3), np.float32))


def test_jpeg_quality_is_lost():
    image = np.random.default_rng(2).integers(0, 255, (16, 16, 3), np.uint8)
    rough, fine = run([tf.image.adjust_jpeg_quality(image, q) for q in (5, 100)])
    error = [np.abs(x.astype(int) - image).mean() for x in (rough, fine)]
    assert error[0] > error[1]
    assert run(tf.image.random_jpeg_quality(image, 5, 90, seed=1)).shape == image.shape
