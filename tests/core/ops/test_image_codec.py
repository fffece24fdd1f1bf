"""Decoding and encoding ops: shapes, attributes, errors; the formats have tests of their own."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

IMAGE = np.add.outer(np.arange(16) * 8, np.arange(24) * 4)[..., None] + np.array([0, 20, 40])
IMAGE = IMAGE.clip(0, 255).astype(np.uint8)


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_there_and_back():
    png, jpeg = tf.image.encode_png(IMAGE), tf.image.encode_jpeg(IMAGE, quality=100)
    exact, near = run([tf.image.decode_png(png), tf.image.decode_jpeg(jpeg)])
    assert np.array_equal(exact, IMAGE)
    assert np.abs(near.astype(int) - IMAGE).max() <= 6
    deep = IMAGE.astype(np.uint16) * 257
    out = tf.image.decode_png(tf.image.encode_png(deep), dtype=tf.uint16)
    assert np.array_equal(run(out), deep)


def test_shapes_follow_from_channels_and_windows():
    file = tf.placeholder(tf.string, [])
    assert tf.image.decode_jpeg(file, channels=3).shape.as_list() == [None, None, 3]
    assert tf.image.decode_png(file).shape.as_list() == [None, None, None]
    assert tf.image.decode_gif(file).shape.as_list() == [None, None, None, 3]
    window = tf.image.decode_and_crop_jpeg(file, [1, 2, 5, 6], channels=1)
    assert window.shape.as_list() == [5, 6, 1]
    assert tf.image.encode_png(IMAGE).shape.as_list() == []
    with pytest.raises(ValueError, match="channels must be non-negative, got -1"):
        tf.image.decode_png(file, channels=-1)
    with pytest.raises(ValueError, match="must be rank 0"):
        tf.image.decode_png(["a", "b"])
    with pytest.raises(ValueError, match="must be rank 3"):
        tf.image.encode_png(IMAGE[0])


def test_a_window_is_a_part():
    jpeg = tf.image.encode_jpeg(IMAGE)
    whole, part = run(
        [tf.image.decode_jpeg(jpeg), tf.image.decode_and_crop_jpeg(jpeg, [3, 5, 6, 7])]
    )
    assert np.array_equal(part, whole[3:9, 5:12])
    assert run(tf.image.extract_jpeg_shape(jpeg, tf.int64)).tolist() == [16, 24, 3]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda f: tf.image.decode_png(f, channels=2), "channels must be 0, 1, 3, or 4, got 2"),
        (lambda f: tf.image.decode_jpeg(f, ratio=3), "ratio must be 1, 2, 4, or 8, got 3"),
        (lambda f: tf.image.decode_jpeg(f, dct_method="X"), "dct_method must be one of"),
        (lambda f: tf.image.decode_bmp(f, channels=2), "channels must be 0, 1, 3 or 4, got 2"),
        (lambda f: tf.image.decode_bmp(f), "Incomplete bmp content"),
        (tf.image.decode_gif, "Expected image .JPEG, PNG, or GIF., got unknown format"),
        (lambda f: tf.image.encode_jpeg(IMAGE, quality=101), r"quality must be in \[0,100\]"),
        (
            lambda f: tf.image.adjust_jpeg_quality(IMAGE, 200),
            r"quality must be in \[0,100\], got 200",
        ),
        (lambda f: tf.image.encode_jpeg(IMAGE[..., :2]), "image must have 1 or 3 channels"),
        (lambda f: tf.image.encode_jpeg(IMAGE, "grayscale"), "format grayscale expects 1 channels"),
        (lambda f: tf.image.encode_png(np.zeros((2, 2, 5), np.uint8)), "1, 2, 3, or 4 channels"),
    ],
)
def test_what_does_not_fit_says_so(make, problem):
    file = tf.placeholder(tf.string, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match=problem):
        run(make(file), {file: b"no image at all"})


def test_none_stands_for_the_default():
    out = tf.image.decode_png(tf.image.encode_png(IMAGE, None), None)
    assert np.array_equal(run(out), IMAGE)
