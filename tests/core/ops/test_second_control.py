"""Control flow of version 2: conditions of any rank, results as they are given."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed import second_control


@contextlib.contextmanager
def version_2():
    tf.enable_control_flow_v2()
    try:
        yield
    finally:
        tf.disable_control_flow_v2()


@pytest.mark.parametrize("value", [True, [[True]], [False], False])
def test_a_condition_whose_dimensions_are_1(value):
    pred, x = tf.placeholder(tf.bool), tf.constant(3.0)
    with version_2():
        y = tf.cond(pred, lambda: x * 2.0, lambda: x * 5.0)
    with tf.Session() as session:
        found = session.run([y, tf.gradients(y, x)[0]], {pred: value})
    assert found == ([6.0, 2.0] if np.all(value) else [15.0, 5.0])


def test_conditions_that_are_no_bool():
    number = tf.placeholder(tf.int32, [1])
    with version_2():
        y = tf.cond(number, lambda: 1, lambda: 2)
        z = tf.while_loop(lambda i: [i], lambda i: i - 1, [number[0]])
    with tf.Session() as session:
        assert session.run([y, z], {number: [4]}) == [1, 0]
        assert session.run([y, z], {number: [0]}) == [2, 0]


def test_loops_with_conditions_of_rank_2():
    x = tf.placeholder_with_default([[1.0]], [1, 1])
    with version_2():
        y = tf.while_loop(lambda v: v < 8.0, lambda v: v * x * 2.0, [x])
        z = tf.while_loop(lambda v: v < 8.0, lambda v: v * 2.0, [x], maximum_iterations=2)
    with tf.Session() as session:
        assert session.run([y, tf.gradients(y, x)[0], z]) == [8.0, 32.0, 4.0]


def test_in_version_1_only_scalars_decide():
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.cond(tf.constant([True]), lambda: 1, lambda: 2)
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 2"):
        tf.while_loop(lambda v: v < 8.0, lambda v: v * 2.0, [tf.constant([[1.0]])])
    with pytest.raises(TypeError, match="does not match expected type of bool"):
        tf.cond(tf.constant(1), lambda: 1, lambda: 2)


def test_results_keep_their_structure_and_must_have_the_same():
    pred = tf.constant(True)
    assert isinstance(tf.cond(pred, lambda: [1], lambda: [2]), tf.Tensor)
    with version_2():
        assert isinstance(tf.cond(pred, lambda: [1], lambda: [2]), list)
        with pytest.raises(TypeError, match="must have the same number, type, and overall struc"):
            tf.cond(pred, lambda: [1], lambda: [2, 3])


def test_functions_have_version_2_whatever_the_setting():
    def larger(x):
        return tf.cond(x > 2, lambda: x * 10, lambda: x)

    rows = tf.data.Dataset.from_tensor_slices([[1], [3]]).map(larger)
    element = rows.make_one_shot_iterator().get_next()
    called = tf.function(larger)(tf.constant([5]))
    with tf.Session() as session:
        assert [session.run(element).tolist() for _ in range(2)] == [[1], [30]]
        assert session.run(called).tolist() == [50]
    with pytest.raises(ValueError, match="must be rank 0"):
        larger(tf.constant([5]))


def test_by_their_internal_names():
    x = tf.constant([2.0])
    y = second_control.cond_v2(x > 1.0, lambda: x * 3.0, lambda: x)
    then, otherwise = second_control.branches_of(y.op)
    assert [o.type for o in then.get_operations() if o.type == "Mul"] == ["Mul"]
    assert all(o.type != "Mul" for o in otherwise.get_operations())
    (z,) = second_control.while_loop(lambda v: v < 9.0, lambda v: v + 1.0, [x], back_prop=False)
    assert second_control.function_of(z.op, "body").outputs
    with tf.Session() as session:
        assert session.run([y, z])[1].tolist() == [9.0]


def test_a_branch_is_where_the_ops_are_with_which_its_cond_is():
    with tf.device("/cpu:1"):
        a = tf.constant(2.0, name="a")
    devices = []

    def branch():
        devices.append(tf.identity(a).op.device)
        return tf.constant(1.0)

    with tf.colocate_with(a):
        tf.cond(tf.constant(True), branch, branch)
    assert devices == ["/device:CPU:1"] * 2
