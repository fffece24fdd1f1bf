"""Comparisons, logic, and choices between tensors."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops import compare


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_comparisons_of_every_kind_of_element():
    assert run(tf.equal([b"a", b"b"], [b"a", b"c"])).tolist() == [True, False]
    assert run(tf.not_equal(b"a", b"b")) and run(tf.equal([True], [False])).tolist() == [False]
    assert run(tf.equal(tf.constant([1 + 2j]), 1 + 2j)).tolist() == [True]
    assert run(tf.less([1, 2], 2)).tolist() == [True, False]
    assert tf.equal(1, 2).dtype == tf.bool
    with pytest.raises(TypeError, match="not in list of allowed values"):
        tf.less(tf.constant([1j]), tf.constant([2j]))
    with pytest.raises(TypeError, match="does not match"):
        tf.equal(tf.constant(1), tf.constant(1.0))


def test_shapes_that_may_not_match():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    loose = compare.equal_op(x, y, incompatible_shape_error=False)
    assert loose.shape.ndims is None
    assert run(loose, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]}).tolist() is False
    assert run(loose, {x: [1.0, 2.0], y: [1.0, 3.0]}).tolist() == [True, False]
    assert compare.not_equal_op(
        tf.zeros([2]), tf.zeros([3]), incompatible_shape_error=False
    ).shape.as_list() == []  # fmt: skip


def test_exclusive_or():
    out = tf.logical_xor([True, True, False], [True, False, False])
    assert out.op.name == "LogicalXor" and run(out).tolist() == [False, True, False]


def test_nearly_equal():
    assert run(compare.approximate_equal_op([1.0, 2.0], [1.0, 2.1])).tolist() == [True, False]
    unsigned = [np.array([1, 5], np.uint8), np.array([2, 5], np.uint8)]
    assert run(compare.approximate_equal_op(*unsigned, tolerance=1.5)).tolist() == [True, True]


@pytest.mark.parametrize(
    ("condition", "data", "shape"),
    [([], [2, 3], [2, 3]), ([2], [2, 3], [2, 3]), ([2, 3], None, None), (None, [2, 3], [2, 3])],
)
def test_select_shapes(condition, data, shape):
    out = compare.select_op(
        tf.placeholder(tf.bool, condition), *[tf.placeholder(tf.float32, data)] * 2
    )
    assert (out.shape.as_list() if out.shape.ndims is not None else None) == shape


def test_select_by_rows_and_its_gradient():
    condition = tf.constant([True, False])
    t, e = tf.ones([2, 2]), tf.zeros([2, 2])
    out = compare.select_op(condition, t, e)
    assert run(out).tolist() == [[1, 1], [0, 0]]
    grads = tf.gradients(out, [condition, t, e])
    assert grads[0] is None
    assert [g.tolist() for g in run(grads[1:])] == [[[1, 1], [0, 0]], [[0, 0], [1, 1]]]
    with pytest.raises(ValueError, match="must be equal"):
        compare.select_op(tf.constant([True] * 3), t, e)


def test_select_of_strings():
    out = compare.select_op([True, False], [b"a", b"b"], [b"c", b"d"])
    assert run(out).tolist() == [b"a", b"d"]


def test_select_v2_broadcasts_and_sums_its_gradient_back():
    t, e = tf.constant([[1.0], [2.0]]), tf.constant(5.0)
    out = compare.select_v2_op([True, False, True], t, e)
    assert run(out).tolist() == [[1.0, 5.0, 1.0], [2.0, 5.0, 2.0]]
    dt, de = run(tf.gradients(out, [t, e]))
    assert dt.tolist() == [[2.0], [2.0]] and de == 2.0


@pytest.mark.parametrize("device", ["/cpu:0", "/device:ECHO:0"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_whole_numbers_far_apart_are_not_near(dtype, device):
    """Not even where their difference does not fit their type, or a float64."""
    limits = np.iinfo(dtype)
    x = [limits.min, limits.max, limits.max, 5]
    y = [limits.max, limits.min, limits.max - 1, 5]
    with tf.device(device):
        one = tf.raw_ops.ApproximateEqual(x=tf.constant(x, dtype), y=tf.constant(y, dtype))
        two = tf.raw_ops.ApproximateEqual(
            x=tf.constant(x, dtype), y=tf.constant(y, dtype), tolerance=1.5
        )
    assert [found.tolist() for found in run([one, two])] == [
        [False, False, False, True], [False, False, True, True],
    ]  # fmt: skip


@pytest.mark.parametrize("device", ["/cpu:0", "/device:ECHO:0"])
def test_a_condition_of_the_wrong_shape_reads_the_same_on_every_device(device):
    condition, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    with tf.device(device):
        chosen = tf.raw_ops.Select(condition=condition, t=x, e=x)
    text = r"'condition' must be of the same shape as .* or a vector .*: \[4\] vs\. \[3,4\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        run(chosen, {condition: np.ones(4, bool), x: np.ones((3, 4))})
