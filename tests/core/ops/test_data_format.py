"""Axes and vectors of one data format in terms of another, as optimized graphs have them."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetch):
    with tf.Session() as session:
        return session.run(fetch).tolist()


def test_axes():
    assert run(tf.raw_ops.DataFormatDimMap(x=[[1, -3], [1, -1]])) == [[2, 2], [2, 1]]
    there = tf.raw_ops.DataFormatDimMap(x=[0, 1, 2, 3], src_format="NHWC", dst_format="WHCN")
    assert run(there) == [3, 1, 0, 2]


def test_vectors():
    assert run(tf.raw_ops.DataFormatVecPermute(x=[7, 4, 9, 3])) == [7, 3, 4, 9]
    pairs = tf.constant([[7, 4], [9, 3], [4, 5], [5, 1]], tf.int64)
    back = tf.raw_ops.DataFormatVecPermute(x=pairs, src_format="NCHW", dst_format="NHWC")
    assert run(back) == [[7, 4], [4, 5], [5, 1], [9, 3]]


def test_formats_that_are_none():
    odd = tf.raw_ops.DataFormatDimMap(x=[0], src_format="NHWC", dst_format="NHXC")
    with pytest.raises(tf.errors.InvalidArgumentError, match="must determine a permutation"):
        run(odd)
