"""Crops and glimpses."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

IMAGE = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_boxes_may_be_turned_and_may_reach_beyond():
    boxes = [[0, 0, 1, 1], [1, 1, 0, 0], [-1, 0, 1, 1]]
    out = tf.image.crop_and_resize(IMAGE, boxes, [0, 0, 0], [3, 4], extrapolation_value=-1)
    assert out.shape.as_list() == [3, 3, 4, 1]
    got = run(out)[..., 0]
    assert np.array_equal(got[0], IMAGE[0, ..., 0])
    assert np.array_equal(got[1], IMAGE[0, ::-1, ::-1, 0])
    assert (got[2, 0] == -1).all()
    assert np.array_equal(got[2, 1:], IMAGE[0, ::2, :, 0])


def test_both_names_of_the_indices():
    box = [[0.0, 0.0, 1.0, 1.0]]
    a = tf.image.crop_and_resize(IMAGE, box, box_indices=[0], crop_size=[2, 2])
    b = tf.image.crop_and_resize(IMAGE, box, box_ind=[0], crop_size=[2, 2])
    assert np.array_equal(*run([a, b]))
    with pytest.raises(ValueError, match="Cannot specify both 'box_ind' and 'box_indices'"):
        tf.image.crop_and_resize(IMAGE, box, [0], [2, 2], box_indices=[0])


def test_pixels_that_crops_share_get_the_sum():
    image, boxes = tf.constant(IMAGE), tf.constant([[0.0, 0.0, 1.0, 1.0]] * 2)
    out = tf.image.crop_and_resize(image, boxes, [0, 0], [3, 4])
    on_image, on_boxes = tf.gradients(out, [image, boxes])
    assert (run(on_image) == 2).all()
    assert on_boxes.op.type == "CropAndResizeGradBoxes"


def test_margins_of_glimpses_have_the_images_values():
    images = np.random.default_rng(0).random((2, 8, 8, 3), np.float32) + 5
    for uniform in (True, False):
        # The op has two names for the same choice; the second takes its default when it is empty.
        out = tf.raw_ops.ExtractGlimpse(
            input=images, size=[6, 6], offsets=[[-1.0, -1.0], [0.0, 0.0]],
            uniform_noise=uniform, noise="",
        )  # fmt: skip
        got = run(out)
        assert np.array_equal(got[0, 3:, 3:], images[0, :3, :3])
        assert np.array_equal(got[1], images[1, 1:7, 1:7])
        assert (got[0] >= images[0].min() - 1e-4).all()
        assert (got[0] <= images[0].max() + 1e-4).all()
        assert len(np.unique(got[0, :3])) > 9


def test_what_lies_outside_may_be_zeros():
    glimpse = tf.compat.v2.image.extract_glimpse(
        np.ones((1, 2, 2, 1), np.float32), [2, 2], [[0.0, 0.0]], centered=False,
        normalized=False, noise="zero",
    )  # fmt: skip
    assert run(glimpse)[0, :, :, 0].tolist() == [[0, 0], [0, 1]]
