"""Mirrors, turns, crops and margins, with shapes that are known and that are not."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

IMAGE = np.arange(24, dtype=np.int32).reshape(3, 4, 2)
BATCH = np.stack([IMAGE, IMAGE + 100])


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


@pytest.mark.parametrize("image", [IMAGE, BATCH])
@pytest.mark.parametrize("is_known", [True, False])
def test_mirrors_and_turns(image, is_known):
    x = tf.constant(image) if is_known else tf.placeholder(tf.int32, [None] * image.ndim)
    feeds = {} if is_known else {x: image}
    rows = image.ndim - 3
    swap = (1, 0, 2) if rows == 0 else (0, 2, 1, 3)
    assert np.array_equal(run(tf.image.flip_left_right(x), feeds), np.flip(image, rows + 1))
    assert np.array_equal(run(tf.image.flip_up_down(x), feeds), np.flip(image, rows))
    assert np.array_equal(run(tf.image.transpose_image(x), feeds), image.transpose(swap))
    for k in (0, 1, 2, 3, 5):
        want = np.rot90(image, k, (rows, rows + 1))
        assert np.array_equal(run(tf.image.rot90(x, k), feeds), want)


def test_mirrors_by_chance_follow_the_seed():
    tf.set_random_seed(3)
    image = tf.image.random_flip_left_right(IMAGE, seed=5)
    batch = tf.image.random_flip_up_down(np.repeat(IMAGE[None], 20, axis=0), seed=5)
    with tf.Session() as session:
        seen = {session.run(image)[0, 0, 0] for _ in range(20)}
        rows = session.run(batch)[:, 0, 0, 0]
    assert seen == {0, 6}
    assert set(rows.tolist()) == {0, 16}


def test_ranks_that_are_no_images():
    with pytest.raises(ValueError, match="'image' must have either 3 or 4 dimensions"):
        tf.image.flip_left_right(np.zeros((1, 1, 1, 1, 1)))
    with pytest.raises(ValueError, match="'image' must be at least three-dimensional"):
        tf.image.rot90(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="all dims of 'image.shape' must be > 0"):
        tf.image.flip_up_down(np.zeros((0, 2, 1)))
    unknown = tf.placeholder(tf.float32)
    assert tf.image.flip_left_right(unknown).shape.as_list() == [None, None, None]
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.image.flip_left_right(unknown), {unknown: np.zeros((0, 2, 1))})


def test_boxes_cut_out_and_put_in():
    cut = tf.image.crop_to_bounding_box(IMAGE, 1, 2, 2, 1)
    assert cut.shape.as_list() == [2, 1, 2]
    assert np.array_equal(run(cut), IMAGE[1:3, 2:3])
    put = tf.image.pad_to_bounding_box(BATCH, 1, 2, 5, 7)
    want = np.pad(BATCH, ((0, 0), (1, 1), (2, 1), (0, 0)))
    assert np.array_equal(run(put), want)
    offset = tf.placeholder(tf.int32, [])
    cut = tf.image.crop_to_bounding_box(IMAGE, offset, 0, 2, 2)
    assert np.array_equal(run(cut, {offset: 1}), IMAGE[1:3, :2])


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ((-1, 0, 1, 1), "offset_height must be >= 0"),
        ((0, -1, 1, 1), "offset_width must be >= 0"),
        ((0, 0, 0, 1), "target_height must be > 0"),
        ((0, 3, 1, 2), "width must be >= target"),
        ((2, 0, 2, 1), "height must be >= target"),
    ],
)
def test_boxes_that_do_not_fit(box, problem):
    with pytest.raises(ValueError, match=problem):
        tf.image.crop_to_bounding_box(IMAGE, *box)


def test_margins_that_do_not_fit():
    with pytest.raises(ValueError, match="width must be <= target - offset"):
        tf.image.pad_to_bounding_box(IMAGE, 0, 1, 3, 4)
    with pytest.raises(ValueError, match="height must be <= target - offset"):
        tf.image.pad_to_bounding_box(IMAGE, 1, 0, 3, 4)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("height", "width"), [(1, 2), (5, 7), (2, 9), (3, 4)])
def test_the_middle_or_margins(is_known, height, width):
    x = tf.constant(IMAGE) if is_known else tf.placeholder(tf.int32, [None, None, 2])
    out = run(
        tf.image.resize_image_with_crop_or_pad(x, height, width), {} if is_known else {x: IMAGE}
    )
    want = IMAGE
    for axis, target in enumerate((height, width)):
        size = want.shape[axis]
        if target < size:
            start = (size - target) // 2
            want = np.take(want, range(start, start + target), axis)
        else:
            before = (target - size) // 2
            margins = [(0, 0)] * 3
            margins[axis] = (before, target - size - before)
            want = np.pad(want, margins)
    assert np.array_equal(out, want)


def test_the_middle_by_a_fraction():
    image = np.arange(64).reshape(8, 8, 1)
    half = tf.image.central_crop(image, 0.5)
    assert half.shape.as_list() == [4, 4, 1]
    assert np.array_equal(run(half), image[2:6, 2:6])
    x = tf.placeholder(tf.int64, [None, None, 8, 1])
    out = tf.image.central_crop(x, 0.3)
    assert out.shape.as_list() == [None, None, 4, 1]
    assert np.array_equal(run(out, {x: image[None]}), image[None, 2:6, 2:6])
    for fraction in (0.0, 1.01):
        with pytest.raises(ValueError, match=r"central_fraction must be within \(0, 1\]"):
            tf.image.central_crop(image, fraction)
    with pytest.raises(ValueError, match="Had rank = 5"):
        tf.image.central_crop(np.zeros((1,) * 5), 0.5)
