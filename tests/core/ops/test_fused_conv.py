"""Convolutions with what is done to their images before: shapes that are known late."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

ATTRS = {"mode": "SYMMETRIC", "strides": [1, 2, 2, 1], "padding": "SAME"}


def test_sizes_that_are_known_late() -> None:
    images = tf.placeholder(tf.float32, [None, None, None, 2])
    size, margins = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [4, 2])
    kernel = tf.ones([3, 3, 2, 5])
    y = tf.raw_ops.FusedResizeAndPadConv2D(
        input=images, size=size, paddings=margins, filter=kernel, **ATTRS
    )
    assert y.shape.as_list() == [None, None, None, 5]
    with tf.Session() as session:
        feeds = {
            images: np.ones((1, 2, 3, 2)), size: [5, 5],
            margins: [[0, 0], [1, 0], [0, 2], [0, 0]],
        }  # fmt: skip
        found = session.run(y, feeds)
    assert found.shape == (1, 3, 4, 5)
    assert found[0, 1, 1, 0] == 18


def test_sizes_that_are_known() -> None:
    images, margins = tf.zeros([2, 4, 5, 2]), tf.constant([[0, 0], [1, 1], [2, 0], [0, 0]])
    y = tf.raw_ops.FusedPadConv2D(
        input=images, paddings=margins, filter=tf.zeros([3, 3, 2, 1]), **ATTRS
    )
    assert y.shape.as_list() == [2, 3, 4, 1]
    with pytest.raises(LookupError, match="No gradient defined"):
        tf.gradients(y, images)
    with pytest.raises(ValueError, match="stride"):
        tf.raw_ops.FusedPadConv2D(
            input=images, paddings=margins, filter=tf.zeros([3, 3, 2, 1]), mode="REFLECT",
            strides=[1, 1], padding="SAME",
        )  # fmt: skip
