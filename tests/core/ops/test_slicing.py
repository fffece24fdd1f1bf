"""Slices, subscripts, splits and assignments to parts of variables."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


@pytest.mark.parametrize(
    "index",
    [
        0, -1, slice(1, 3), slice(None, None, -1), slice(3, 0, -2), (Ellipsis, 0), (0, Ellipsis, 1),
        (None, 1), (slice(None), None, 2), (slice(-3, None), -2), (slice(0, 0),), Ellipsis,
        (slice(None, None, 3), Ellipsis, slice(None, None, -2)), (1, 2, 3), (slice(9, 20),),
    ],
)  # fmt: skip
def test_subscripts_are_python_s(index):
    array = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    static = tf.constant(array)[index]
    assert tuple(static.shape.as_list()) == array[index].shape
    x = tf.placeholder(tf.float32)
    got, fed = run([static, x[index]], {x: array})
    assert np.array_equal(got, array[index]) and np.array_equal(fed, array[index])


def test_names_are_tf_s(graph):
    x = tf.placeholder(tf.float32, [None, 3])
    x[0]
    assert names(graph)[1:] == [
        "strided_slice/stack", "strided_slice/stack_1", "strided_slice/stack_2", "strided_slice",
    ]  # fmt: skip


def test_tensors_and_dimensions_as_bounds():
    x = tf.placeholder(tf.float32, [None, 4])
    i = tf.constant(1)
    assert run(x[i], {x: np.eye(4)}).tolist() == [0, 1, 0, 0]
    assert run(x[:i], {x: np.eye(4)}).shape == (1, 4)
    assert run(x[tf.constant(0, tf.int64) :, : x.shape[1]], {x: np.eye(4)}).shape == (4, 4)
    assert run(tf.constant([1, 2, 3])[tf.constant([True, False, True])]).tolist() == [1, 3]


def test_bad_subscripts():
    x = tf.zeros([3])
    with pytest.raises(
        ValueError, match=r"slice index 5 of dimension 0 out of bounds.*strided_slice"
    ):
        x[5]
    with pytest.raises(ValueError, match="input has only 1 dims"):
        x[0, 0]
    for bad in ("a", 1.5, tf.constant(1.0), tf.constant([1, 2])):
        with pytest.raises(TypeError, match="Only integers, slices"):
            x[bad]
    for bad in (0.5, tf.constant(0.5)):
        with pytest.raises(TypeError, match="Only integers, slices"):
            x[::bad]
    with pytest.raises(ValueError, match="only supported for variables"):
        x[0].assign(1.0)


def test_partial_shapes():
    x = tf.placeholder(tf.float32, [None, 4, None])
    assert x[:, 1:3].shape.as_list() == [None, 2, None]
    assert x[0, :, 0].shape.as_list() == [4]
    assert x[::2, ::-1].shape.as_list() == [None, 4, None]
    assert tf.slice(x, [0, 1, 0], [-1, 2, 5]).shape.as_list() == [None, 2, 5]
    assert tf.slice(x, [0, 1, 0], [-1, -1, -1]).shape.as_list() == [None, 3, None]


def test_gradients_of_slices_twice():
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    y = tf.reduce_sum(x[1:3] ** 3.0)
    (g,) = tf.gradients(y, x)
    (h,) = tf.gradients(tf.reduce_sum(g), x)
    got = run([g, h])
    assert got[0].tolist() == [0, 12, 27, 0] and got[1].tolist() == [0, 12, 18, 0]
    p = tf.placeholder(tf.float32)
    (s,) = tf.gradients(tf.slice(p, [1, 0], [2, -1]), p)
    assert run(s, {p: np.zeros((4, 2))}).tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize("use_resource", [False, True])
def test_assignment_to_a_part_of_a_variable(use_resource):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=use_resource)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(v[1, :].assign([7.0, 8.0]))
        session.run(v[:, 0].assign([5.0, 6.0]))
        assert session.run(v).tolist() == [[5.0, 2.0], [6.0, 8.0]]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_scalar_string_is_put_into_a_part_as_bytes(use_resource):
    words, at = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int32, ())
    v = tf.Variable(["", ""], use_resource=use_resource)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(v[1].assign(words[at]), {words: ["a", "b"], at: 0})
        assert session.run(v).tolist() == [b"", b"a"]


def test_splits():
    x = tf.placeholder(tf.float32, [4, None])
    assert [t.shape.as_list() for t in tf.split(x, 2)] == [[2, None]] * 2
    assert [t.shape.as_list() for t in tf.split(x, [1, -1], 0)] == [[1, None], [3, None]]
    parts = tf.split(value=tf.zeros([2, 6]), num_or_size_splits=3, axis=1)
    assert len(parts) == 3 and parts[0].op.name == "split_2"
    with pytest.raises(ValueError, match="evenly divisible by 2 but is 5"):
        tf.split(tf.zeros([5]), 2)
    with pytest.raises(ValueError, match="Rank-0 tensors are not supported"):
        tf.split(x, tf.constant(2))
    n = tf.placeholder(tf.int32)
    with pytest.raises(ValueError, match="Cannot infer num"):
        tf.split(x, n)
    assert len(tf.split(x, n, num=3)) == 3


def test_unstack():
    x = tf.placeholder(tf.float32, [None, 3])
    assert len(tf.unstack(x, axis=1)) == 3 and tf.unstack(x, axis=-1)[0].shape.as_list() == [None]
    with pytest.raises(ValueError, match="Cannot infer num from shape"):
        tf.unstack(x)
    with pytest.raises(ValueError, match=r"axis = 2 not in \[-2, 2\)"):
        tf.unstack(x, axis=2)
    a, b = run(tf.unstack(x, num=2), {x: [[1, 2, 3], [4, 5, 6]]})
    assert a.tolist() == [1, 2, 3] and b.tolist() == [4, 5, 6]


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_empty_part_takes_any_value(use_resource):
    variable = tf.Variable(tf.zeros([2, 3]), use_resource=use_resource)
    done = variable[1:1, 0:0].assign(np.zeros([1, 0]))
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(done).tolist() == [[0, 0, 0], [0, 0, 0]]
