"""Fills, zeros, ones, identity matrices, ranges, grids."""

from __future__ import annotations

import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_small_zeros_are_constants_and_large_ones_fills(graph):
    assert tf.zeros([2, 3]).op.type == "Const"
    assert tf.zeros([2000]).op.type == "Fill"
    assert names(graph) == ["zeros", "zeros_1/shape_as_tensor", "zeros_1/Const", "zeros_1"]
    assert tf.ones([2], tf.bool).op.type == "Const"
    assert run(tf.zeros([2], tf.string)).tolist() == [b"", b""]


def test_zeros_of_a_shape_that_is_computed():
    n = tf.placeholder(tf.int32, [])
    out = tf.zeros([n, 3])
    assert out.shape.as_list() == [None, 3]
    assert run(out, {n: 2}).shape == (2, 3)
    assert run(tf.ones(tf.constant([2], tf.int64), tf.int32)).tolist() == [1, 1]


def test_like(graph):
    x = tf.placeholder(tf.float32, [None, 2])
    assert tf.zeros_like(x).op.type == "ZerosLike"
    assert tf.zeros_like(tf.ones([2])).op.type == "Const"
    assert tf.zeros_like(x, tf.int32).dtype == tf.int32
    assert tf.ones_like(x).shape.as_list() == [None, 2]
    assert run(tf.ones_like(x, optimize=False), {x: [[1.0, 2.0]]}).tolist() == [[1.0, 1.0]]


def test_eye():
    assert run(tf.eye(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert run(tf.eye(2, batch_shape=[2])).shape == (2, 2, 2)
    n = tf.placeholder(tf.int32, [])
    assert run(tf.eye(n), {n: 2}).tolist() == [[1, 0], [0, 1]]
    assert run(tf.eye(n, 3, dtype=tf.int32), {n: 2}).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(TypeError, match="must be positive integer values"):
        tf.eye(1.5)


def test_range(graph):
    assert tf.range(3).shape.as_list() == [3]
    assert names(graph) == ["range/start", "range/limit", "range/delta", "range"]
    assert run(tf.range(2, 9, 3)).tolist() == [2, 5, 8]
    assert tf.range(0, 1.0, 0.25).dtype == tf.float32
    assert tf.range(tf.constant(3, tf.int64)).dtype == tf.int64
    assert tf.range(3, dtype=tf.float64).dtype == tf.float64
    with pytest.raises(ValueError, match="Requires delta != 0"):
        tf.range(0, 5, 0)
    with pytest.raises(ValueError, match="Requires start <= limit when delta > 0: 5/0"):
        tf.range(5, 0)
    n = tf.placeholder(tf.int32, [])
    assert tf.range(n).shape.as_list() == [None]


def test_lin_space():
    assert run(tf.linspace(0.0, 1.0, 3)).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="Requires num > 0: 0"):
        tf.lin_space(0.0, 1.0, 0)


def test_meshgrid():
    x, y = tf.meshgrid([1, 2, 3], [4, 5])
    assert x.shape.as_list() == [2, 3]
    assert run(y).tolist() == [[4, 4, 4], [5, 5, 5]]
    assert tf.meshgrid([1, 2], [3], indexing="ij")[0].shape.as_list() == [2, 1]
    with pytest.raises(ValueError, match="indexing parameter"):
        tf.meshgrid([1], indexing="yx")


def test_fill_with_a_negative_length():
    p = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Dimension -1 must be >= 0"):
        run(tf.fill(p, 1), {p: [-1]})
