"""Fold: constants are computed once, effects never are."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def kinds(program):
    return [n.op for n in program.block.nodes]


def test_a_constant_subgraph_becomes_one_constant(compiled):
    y = tf.reduce_sum(tf.range(5) * 2) + 1
    with tf.Session() as session:
        assert kinds(compiled(session, y)) == ["Const"]
        assert session.run(y) == 21


def test_what_is_folded_is_told(compiled):
    y = tf.add(tf.constant(1), tf.constant(2), name="three")
    with tf.Session() as session:
        (row,) = [r for r in session.explain(y).rows if r.how == "removed"]
    assert (row.node, row.op, row.why) == ("three", "Add", "fold: its inputs are constant")


def test_random_and_stateful_ops_are_not_folded(compiled):
    y = tf.random_uniform([2]) + 0.0
    v = tf.Variable(1.0)
    z = v.assign_add(tf.constant(1.0) + 1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert (session.run(y) != session.run(y)).any()
        assert [session.run(z), session.run(z)] == [3, 5]


def test_control_inputs_keep_running():
    v = tf.Variable(0)
    with tf.control_dependencies([v.assign_add(1)]):
        y = tf.constant(1) + tf.constant(2)
    z = y * 10
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(z) == 30
        assert session.run(v) == 1


def test_the_shape_of_what_has_an_effect_does_not_hide_the_effect():
    v = tf.Variable([1.0, 2.0])
    for ask in (tf.raw_ops.Shape, tf.raw_ops.Size, tf.raw_ops.Rank):
        y = ask(input=v.assign_add([1.0, 1.0]))
        with tf.Session() as session:
            session.run(v.initializer)
            session.run(y)
            assert list(session.run(v)) == [2, 3]


def test_the_shape_of_a_checked_value_does_not_hide_the_check():
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), ["negative"])]):
        y = tf.identity(x)
    size = tf.raw_ops.Shape(input=y)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
            session.run(size, {x: [-1.0, 1.0]})


def test_shapes_of_feeds_are_known(compiled):
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.reshape(x, [tf.shape(x)[1], -1])
    with tf.Session() as session:
        program = compiled(session, y, {x: np.zeros((2, 3))})
        assert "StridedSlice" not in kinds(program)
        assert session.run(y, {x: np.zeros((2, 3))}).shape == (3, 2)
        assert session.run(y, {x: np.zeros((4, 5))}).shape == (5, 4)


def test_large_results_are_not_folded(compiled):
    y = tf.zeros([3000, 3000]) + 1.0
    with tf.Session() as session:
        assert "Const" in kinds(compiled(session, y))
        assert any(op in kinds(compiled(session, y)) for op in ("Add", "AddV2"))
        assert all(n.op != "Const" or n.attrs["value"].nbytes < 10**7
                   for n in compiled(session, y).block.nodes)  # fmt: skip


def test_an_error_in_a_constant_is_raised_only_when_it_is_needed():
    bad = tf.constant([1, 2])[tf.constant(0) :][5 - 4 + 8 :]
    broken = tf.gather(tf.constant([1, 2]), tf.constant([7]), name="broken")
    ok = tf.constant(1) + 1
    with tf.Session() as session:
        assert session.run(ok) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="broken"):
            session.run(broken)
        assert session.run(bad).size == 0


def test_a_feed_in_the_middle_of_constants_counts():
    a = tf.constant(1) + 1
    b = a * 10
    with tf.Session() as session:
        assert session.run(b) == 20
        assert session.run(b, {a: 5}) == 50
        assert session.run(b) == 20


def test_integer_division_by_zero_is_no_crash_of_the_compiler():
    y = tf.constant(1) // tf.constant(0)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="[Dd]ivision by zero"):
            session.run(y)
