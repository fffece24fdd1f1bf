"""Resizing by a method of choice, and within a size."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

IMAGE = np.arange(24, dtype=np.uint8).reshape(4, 6, 1)


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_methods_have_numbers_and_names():
    kinds = {
        0: "ResizeBilinear", "bilinear": "ResizeBilinear",
        1: "ResizeNearestNeighbor", "nearest": "ResizeNearestNeighbor",
        2: "ResizeBicubic", "bicubic": "ResizeBicubic",
        3: "ResizeArea", "area": "ResizeArea",
    }  # fmt: skip
    for method, kind in kinds.items():
        with tf.Graph().as_default() as graph:
            out = tf.image.resize_images(IMAGE, [2, 3], method)
            assert out.shape.as_list() == [2, 3, 1]
            assert kind in {op.type for op in graph.get_operations()}
    assert tf.image.ResizeMethod.AREA == 3
    with pytest.raises(ValueError, match="Resize method is not implemented"):
        tf.image.resize_images(IMAGE, [2, 3], 4)


def test_an_image_of_that_size_already_is_left_alone():
    same = tf.image.resize_images(IMAGE, [4, 6])
    assert same.dtype == tf.uint8
    assert np.array_equal(run(same), IMAGE)
    assert tf.image.resize_images(IMAGE, [4, 7]).dtype == tf.float32


def test_sizes_that_are_none():
    with pytest.raises(ValueError, match="'images' contains no shape"):
        tf.image.resize_images(tf.placeholder(tf.float32), [1, 1])
    with pytest.raises(ValueError, match="either 3 or 4 dimensions"):
        tf.image.resize_images(np.zeros((2, 2)), [1, 1])
    for size in ([1], [1, 2, 3], 3):
        with pytest.raises(ValueError, match="'size' must be a 1-D Tensor of 2 elements"):
            tf.image.resize_images(IMAGE, size)
    with pytest.raises(ValueError, match="'size' must be a 1-D int32 Tensor"):
        tf.image.resize_images(IMAGE, [1.5, 2.0])


def test_a_size_of_unknown_shape():
    size = tf.placeholder(tf.int32)
    out = tf.image.resize_images(IMAGE, size, tf.image.ResizeMethod.NEAREST_NEIGHBOR)
    assert out.shape.as_list() == [None, None, 1]
    assert np.array_equal(run(out, {size: [2, 6]}), IMAGE[::2])


@pytest.mark.parametrize(("size", "want"), [([8, 8], (5, 8)), ([2, 30], (2, 3)), ([4, 6], (4, 6))])
def test_proportions_are_kept_on_request(size, want):
    # 8 / 6 * 4 rows are 5.33, which is rounded.
    out = tf.image.resize_images(IMAGE, size, preserve_aspect_ratio=True)
    assert run(out).shape == (*want, 1)
    fed = tf.placeholder(tf.int32, [2])
    out = tf.image.resize_images(IMAGE, fed, preserve_aspect_ratio=True)
    assert run(out, {fed: size}).shape == (*want, 1)


def test_margins_fill_what_proportions_leave():
    image = np.full((2, 4, 1), 9, np.float32)
    out = run(tf.image.resize_image_with_pad(image, 4, 4))
    assert np.array_equal(out[1:3], np.full((2, 4, 1), 9))
    assert not out[[0, 3]].any()
    batch = tf.placeholder(tf.float32, [None, None, None, 1])
    padded = tf.image.resize_image_with_pad(batch, 2, 6, tf.image.ResizeMethod.AREA)
    assert padded.shape.as_list() == [None, 2, 6, 1]
    got = run(padded, {batch: image[None]})
    assert np.array_equal(got[0, 0, :, 0], [0, 9, 9, 9, 9, 0])


def test_resizing_as_tf_2_has_it():
    image = tf.compat.v2.image
    assert image.ResizeMethod.LANCZOS3 == "lanczos3" and tf.image.ResizeMethod.BILINEAR == 0
    pair = np.array([[[0.0], [8.0]]], np.float32)
    # The centres of the new pixels are at 1/4, 3/4, 5/4 and 7/4 of the old ones.
    wide = run(image.resize(pair, [1, 4]))
    assert wide.ravel().tolist() == [0, 2, 6, 8]
    row = np.array([0, 0, 0, 8, 0, 0, 0, 0], np.float32).reshape(1, 8, 1)
    seen, missed = run([image.resize(row, [1, 2], antialias=a) for a in (True, False)])
    assert seen[0, 0, 0] > 0 and missed.ravel().tolist() == [0, 0]
    for method in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic", "bicubic", "area"):
        flat = run(image.resize(np.full((4, 4, 1), 3.0, np.float32), [2, 7], method))
        np.testing.assert_allclose(flat, np.full((2, 7, 1), 3.0), rtol=1e-5)
    assert image.resize(IMAGE, [2, 2], "nearest").dtype == tf.uint8
    framed = run(image.resize_with_pad(np.ones((2, 4, 1), np.float32), 4, 4))
    assert framed[..., 0].tolist() == [[0] * 4, [1] * 4, [1] * 4, [0] * 4]
    with pytest.raises(ValueError, match="Resize method is not implemented"):
        image.resize(IMAGE, [2, 3], "best")
