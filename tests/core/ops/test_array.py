"""Shapes of tensors and changes of shape."""

from __future__ import annotations

import math

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_a_static_shape_is_a_constant(graph):
    x = tf.placeholder(tf.float32, [2, 3])
    assert tf.shape(x).op.type == "Const" and tf.size(x).op.type == "Const"
    assert tf.rank(x).op.type == "Const"
    y = tf.placeholder(tf.float32, [None, 3])
    assert tf.shape(y).op.type == "Shape" and tf.rank(y).op.type == "Const"
    assert names(graph)[1:4] == ["Shape", "Size", "Rank"]
    assert tf.shape(y, out_type=tf.int64).dtype == tf.int64
    assert run([tf.shape(y), tf.size(y)], {y: np.zeros((4, 3))})[1] == 12


def test_reshape_finds_what_can_be_found():
    x = tf.placeholder(tf.float32, [None, 4, 2])
    assert tf.reshape(x, [-1, 8]).shape.as_list() == [None, 8]
    assert tf.reshape(x, [tf.shape(x)[0], 8]).shape.as_list() == [None, 8]
    assert tf.reshape(tf.zeros([6, 2]), [3, -1]).shape.as_list() == [3, 4]
    assert tf.reshape(tf.zeros([6]), tf.placeholder(tf.int32, [2])).shape.as_list() == [None, None]
    assert tf.reshape(tf.zeros([6]), tf.placeholder(tf.int32)).shape.ndims is None


def test_reshape_of_mixed_parts_is_named_as_in_tf(graph):
    x = tf.placeholder(tf.float32, [None, 4])
    tf.reshape(x, [tf.shape(x)[0], 2, 2])
    assert names(graph)[-4:] == ["Reshape/shape/1", "Reshape/shape/2", "Reshape/shape", "Reshape"]


def test_reshape_that_does_not_fit():
    with pytest.raises(ValueError, match=r"Cannot reshape a tensor with 6 elements .*'Reshape'"):
        tf.reshape(tf.zeros([6]), [4, 2])
    p = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"6 (elements to shape|values, but)"):
        run(tf.reshape(p, [4, 2]), {p: np.zeros(6)})


def test_expand_and_squeeze_take_old_names():
    x = tf.zeros([2, 1, 3])
    assert tf.expand_dims(x, dim=-1).shape.as_list() == [2, 1, 3, 1]
    assert tf.squeeze(x, squeeze_dims=[1]).shape.as_list() == [2, 3]
    assert tf.squeeze(x, axis=1).shape.as_list() == [2, 3]
    with pytest.raises(ValueError, match="Cannot specify both 'dim' and 'axis'"):
        tf.expand_dims(x, 0, dim=0)
    with pytest.raises(ValueError, match="Must specify an axis argument"):
        tf.expand_dims(x)
    with pytest.raises(
        ValueError, match=r"Can not squeeze dim\[0\], expected a dimension of 1, got 2"
    ):
        tf.squeeze(x, [0])
    assert tf.squeeze(tf.placeholder(tf.float32, [None, 1])).shape.ndims is None
    assert tf.squeeze(tf.placeholder(tf.float32, [None, 1]), [1]).shape.as_list() == [None]


def test_broadcasting_of_shapes():
    assert tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])).as_list() == [
        2,
        3,
    ]
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))
    assert run(tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([3]))).tolist() == [2, 3]
    assert tf.broadcast_to(tf.zeros([1, 3]), [4, 2, 3]).shape.as_list() == [4, 2, 3]


def test_ensure_shape_is_checked_at_run_time():
    x = tf.placeholder(tf.float32)
    y = tf.ensure_shape(x, [None, 2])
    assert y.shape.as_list() == [None, 2]
    assert run(y, {x: np.zeros((3, 2))}).shape == (3, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="EnsureShape"):
        run(y, {x: np.zeros(3)})


def test_gradients_of_reshapes_keep_the_shape():
    x = tf.placeholder(tf.float32, [None, 4])
    (g,) = tf.gradients(tf.reshape(x, [-1, 2]) * 3.0, x)
    assert run(g, {x: np.zeros((3, 4))}).tolist() == [[3.0] * 4] * 3
    (s,) = tf.gradients(tf.squeeze(tf.expand_dims(x, 1), [1]) * 2.0, x)
    assert run(s, {x: np.zeros((1, 4))}).tolist() == [[2.0] * 4]


def test_a_shape_that_is_known_late_is_checked_late() -> None:
    size, x = tf.placeholder(tf.int32, []), tf.constant([1.0, 2.0, 3.0])
    reshaped, sliced = tf.reshape(x, tf.stack([size])), tf.slice(x, tf.stack([size]), [3])
    assert reshaped.shape.as_list() == [3]
    with tf.Session() as session:
        assert session.run(reshaped, {size: 3}).tolist() == [1.0, 2.0, 3.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="requested shape has 7"):
            session.run(reshaped, {size: 7})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected size\[0\] in"):
            session.run(sliced, {size: 1})


@pytest.mark.parametrize("sizes", [[2**40, 0], [3, 2**31]])
def test_sizes_that_32_bits_cannot_hold(sizes):
    x = tf.placeholder(tf.float32, sizes)
    assert [run(tf.shape(x, out_type=tf.int64)).tolist(), run(tf.size(x, out_type=tf.int64))] == [
        sizes,
        math.prod(sizes),
    ]
    nothing = tf.reshape(
        tf.placeholder_with_default(np.zeros((0,), np.float32), [None]), [2**40, 0]
    )
    for of in (tf.shape(nothing), tf.shape(nothing)[0], tf.shape_n([nothing, nothing])[1]):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="int32, which cannot hold 1099511"
        ):
            run(of)


def test_sizes_beyond_32_bits_are_of_64_where_an_op_takes_either():
    assert tf.reshape(tf.zeros([0]), [2**40, 0]).op.inputs[1].dtype is tf.int64
    assert tf.tile(tf.zeros([0]), np.array([2**40])).shape == (0,)
    assert tf.reshape(tf.zeros([0]), [4, 0]).op.inputs[1].dtype is tf.int32
