"""Concatenation, stacking, padding, tiling, reversal, rolling, repeating."""

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


def test_concat(graph):
    a, b = tf.zeros([2, 3]), tf.placeholder(tf.float32, [None, 3])
    assert tf.concat([a, b], 0).shape.as_list() == [None, 3]
    assert tf.concat([a, b], 1).shape.as_list() == [2, 6]
    assert tf.concat([a, b], tf.placeholder(tf.int32, [])).shape.as_list() == [None, None]
    assert names(graph)[2:4] == ["concat/axis", "concat"]
    with pytest.raises(ValueError, match="Shape must be rank 2 but is rank 1"):
        tf.concat([a, tf.zeros([3])], 0)


def test_concat_of_one_is_an_identity(graph):
    out = tf.concat([tf.zeros([2])], 0)
    assert out.op.type == "Identity"
    assert names(graph) == ["zeros", "concat/concat_dim", "concat/concat"]


@pytest.mark.parametrize("shape", [[None, 2], None])
def test_gradients_of_concat_without_shapes(shape):
    a, b = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
    joined = tf.concat([a, b], 0)
    grads = tf.gradients(joined * tf.reshape(tf.range(6.0), [3, 2]), [a, b])
    got = run(grads, {a: np.zeros((1, 2)), b: np.zeros((2, 2))})
    assert got[0].tolist() == [[0, 1]] and got[1].tolist() == [[2, 3], [4, 5]]
    many = [tf.placeholder(tf.float32, shape) for _ in range(20)]
    (last,) = tf.gradients(tf.concat(many, 1) * 2.0, [many[-1]])
    assert run(last, {m: np.zeros((1, 2)) for m in many}).tolist() == [[2, 2]]


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_concat_from_gathered_rows(axis):
    a, b = tf.ones([2, 2]), tf.ones([2, 2]) * 2.0
    rows = tf.gather(tf.concat([a, b], axis), [1, 1])
    got = run([tf.convert_to_tensor(g) for g in tf.gradients(rows, [a, b])])
    assert got[0].tolist() == [[0, 0], [2, 2]]
    assert got[1].tolist() == ([[0, 0], [0, 0]] if axis == 0 else [[0, 0], [2, 2]])


def test_stack(graph):
    x = tf.placeholder(tf.float32, [2])
    assert tf.stack([x, x], axis=1).shape.as_list() == [2, 2]
    assert tf.stack([1, 2, 3]).op.type == "Const"
    assert tf.stack([tf.shape(tf.placeholder(tf.float32))[0], 3]).op.name == "stack_2"
    assert "stack_2/1" in names(graph)
    with pytest.raises(
        ValueError, match="Dimension 0 in both shapes must be equal, but are 2 and 3"
    ):
        tf.stack([tf.zeros([2]), tf.zeros([3])])
    with pytest.raises(ValueError, match=r"axis = 3 not in \[-2, 2\)"):
        tf.stack([x, x], axis=3)
    assert run(tf.parallel_stack([x, x]), {x: [1, 2]}).tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ValueError, match="must be fully defined"):
        tf.parallel_stack([tf.placeholder(tf.float32, [None])])


def test_pad():
    x = tf.placeholder(tf.float32, [None, 2])
    assert tf.pad(x, [[1, 1], [0, 2]]).shape.as_list() == [None, 4]
    n = tf.placeholder(tf.int32, [])
    assert tf.pad(tf.zeros([2, 2]), [[0, n], [1, 1]]).shape.as_list() == [None, 4]
    assert run(tf.pad([[1]], [[0, 1], [1, 0]], constant_values=7)).tolist() == [[7, 1], [7, 7]]
    assert run(tf.pad([1, 2, 3], [[2, 0]], "reflect")).tolist() == [3, 2, 1, 2, 3]
    assert run(tf.pad([1, 2, 3], [[2, 0]], "SYMMETRIC")).tolist() == [2, 1, 1, 2, 3]
    with pytest.raises(ValueError, match="Unknown padding mode"):
        tf.pad(x, [[1, 1], [0, 0]], "EDGE")
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
        tf.pad(tf.zeros([2, 2]), [[1, 1]])


def test_pad_gradients_without_shapes():
    x, p = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [None, 2])
    for mode, want in (("CONSTANT", [1, 1, 1]), ("REFLECT", [1, 2, 2]), ("SYMMETRIC", [2, 2, 1])):
        (g,) = tf.gradients(tf.pad(x, p, mode), x)
        assert run(g, {x: [1.0, 2.0, 3.0], p: [[2, 0]]}).tolist() == want


def test_tile_and_its_gradient():
    x, m = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [2])
    out = tf.tile(x, m)
    assert out.shape.as_list() == [None, None]
    (g,) = tf.gradients(out, x)
    assert run(g, {x: np.zeros((2, 3)), m: [2, 3]}).tolist() == [[6] * 3] * 2
    v = tf.ones([2, 2])
    (s,) = tf.gradients(tf.gather(tf.tile(v, [2, 2]), [3, 0, 3]), v)
    assert run(tf.convert_to_tensor(s)).tolist() == [[2, 2], [4, 4]]


def test_reversals_and_rolls():
    assert run(tf.reverse([[1, 2], [3, 4]], [1])).tolist() == [[2, 1], [4, 3]]
    assert run(tf.reverse_sequence([[1, 2, 3]], [2], seq_axis=1)).tolist() == [[2, 1, 3]]
    assert run(tf.roll([1, 2, 3], -1, 0)).tolist() == [2, 3, 1]
    with pytest.raises(ValueError, match="specified more than once"):
        tf.reverse(tf.zeros([2, 2]), [0, -2])
    with pytest.raises(ValueError, match="needs `seq_axis`"):
        tf.reverse_sequence([[1]], [1])


def test_repeat_of_an_unknown_rank():
    data, times = tf.placeholder(tf.int32, None), tf.placeholder(tf.int32, None)
    repeated = tf.repeat(data, times, axis=0)
    for given, count in ((3, 4), ([3], 4), (3, [4]), ([[1, 2], [3, 4]], [0, 2]), ([[1, 2]], 2)):
        found = run(repeated, {data: given, times: count})
        assert found.tolist() == np.repeat(np.atleast_1d(given), count, axis=0).tolist()
    with pytest.raises(ValueError, match="Dimensions 3 and 2 are not compatible"):
        tf.repeat([1, 2, 3], [1, 2], axis=0)
    with pytest.raises(ValueError, match=r"Shape \(1, 1\) must have rank at most 1"):
        tf.repeat([1], [[1]], axis=0)


def test_repeat():
    assert run(tf.repeat([1, 2], 2)).tolist() == [1, 1, 2, 2]
    assert run(tf.repeat([[1, 2], [3, 4]], [1, 2], axis=1)).tolist() == [[1, 2, 2], [3, 4, 4]]
    assert run(tf.repeat([[1, 2], [3, 4]], [0, 2], axis=0)).tolist() == [[3, 4], [3, 4]]
    assert run(tf.repeat(3, 2)).tolist() == [3, 3]
    for given, wanted in ((2, [1, 1, 2, 2]), ([0, 3], [2, 2, 2])):
        unknown = tf.placeholder_with_default(given, None)
        assert run(tf.repeat([1, 2], unknown)).tolist() == wanted
    with pytest.raises(TypeError, match="axis must be an int"):
        tf.repeat([1], 2, axis="0")


def test_offsets_that_do_not_fit():
    invalid = tf.errors.InvalidArgumentError
    first = [2, 3, 5]
    with pytest.raises(invalid, match=r"Input 1 has shape \[2 7 10\] and doesn't match input 0"):
        run(tf.raw_ops.ConcatOffset(concat_dim=1, shape=[first, [2, 7, 10]]))
    with pytest.raises(invalid, match="input 1 should contain 3 elements, but got 4"):
        run(tf.raw_ops.ConcatOffset(concat_dim=1, shape=[first, [2, 7, 5, 10]]))
    with pytest.raises(invalid, match="should be a vector"):
        run(tf.raw_ops.ConcatOffset(concat_dim=1, shape=[[first], [first]]))


def test_rolls_that_do_not_fit():
    with pytest.raises(ValueError, match="both shapes must be equal"):
        tf.roll([[1, 2], [3, 4]], [1], [0, 1])
    axis = tf.placeholder(tf.int32)
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="axis must be a scalar or a 1-D"),
    ):
        session.run(tf.roll([[1, 2], [3, 4]], 1, axis), {axis: [[0, 1]]})
