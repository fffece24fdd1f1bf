"""Resizes: static shapes, gradients, names; values are the conformance suite's matter."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_shapes_follow_from_what_is_known():
    images = tf.placeholder(tf.uint8, [None, 5, 7, 3])
    size = tf.placeholder(tf.int32, [2])
    assert tf.image.resize_bilinear(images, [4, 9]).shape.as_list() == [None, 4, 9, 3]
    assert tf.image.resize_area(images, size).shape.as_list() == [None, None, None, 3]
    half = tf.stack([size[0], 6])
    assert tf.image.resize_bicubic(images, half).shape.as_list() == [None, None, 6, 3]
    near = tf.image.resize_nearest_neighbor(images, [2, 2])
    assert (near.dtype, near.op.type) == (tf.uint8, "ResizeNearestNeighbor")


def test_corners_stay_where_they_are():
    row = np.array([0, 10], np.float32).reshape(1, 1, 2, 1)
    for align, want in ((False, [0, 5, 10, 10]), (True, [0, 10 / 3, 20 / 3, 10])):
        out = tf.image.resize_bilinear(row, [1, 4], align_corners=align)
        np.testing.assert_allclose(run(out).reshape(-1), want, rtol=1e-6)
    out = tf.image.resize_bilinear(row, [1, 4], half_pixel_centers=True)
    np.testing.assert_allclose(run(out).reshape(-1), [0, 2.5, 7.5, 10], rtol=1e-6)


def test_integer_images_and_halves_have_the_gradients_that_tf_has():
    size = [2, 2]
    whole = tf.placeholder(tf.int32, [1, 3, 3, 1])
    assert tf.gradients(tf.image.resize_bilinear(whole, size), whole) == [None]
    half = tf.placeholder(tf.float16, [1, 3, 3, 1])
    assert tf.gradients(tf.image.resize_bicubic(half, size), half) == [None]
    (grad,) = tf.gradients(tf.image.resize_bilinear(half, size), half)
    assert (grad.dtype, grad.op.type) == (tf.float16, "ResizeBilinearGrad")
    single = tf.placeholder(tf.float32, [1, 3, 3, 1])
    with pytest.raises(LookupError, match="No gradient defined"):
        tf.gradients(tf.image.resize_area(single, size), single)


def test_a_large_image_with_few_rows_left_is_read_in_part():
    image = np.arange(400, dtype=np.float32).reshape(1, 100, 4, 1)
    out = run(tf.image.resize_nearest_neighbor(image, [3, 4]))
    assert np.array_equal(out, image[:, [0, 33, 66]])


def test_an_area_without_extent_has_no_mean():
    image = np.ones((1, 1, 1, 1), np.float32)
    assert np.isnan(run(tf.image.resize_area(image, [2, 2], align_corners=True))).all()
