"""Prune: only what the fetches need runs, in an order that users expect."""

from __future__ import annotations

import pytest

import opdock as tf


def ops(program):
    return [n.op for n in program.block.nodes]


def test_what_nobody_asked_for_does_not_run(compiled):
    v = tf.Variable(0)
    v.assign_add(1)
    x = tf.placeholder(tf.float32)
    tf.add(x, 1.0)
    y = tf.constant(2)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == 2
        assert session.run(v) == 0
        assert ops(compiled(session, y)) == ["Const"]


def test_feeds_cut_the_graph():
    a = tf.placeholder(tf.float32, [], name="never_fed")
    b = a * 2
    c = b + 1
    with tf.Session() as session:
        assert session.run(c, {b: 5.0}) == 6
        assert session.run([b, c], {b: 5.0}) == [5, 6]
        assert session.run(b, {b: 7.0}) == 7
        with pytest.raises(tf.errors.InvalidArgumentError, match="never_fed"):
            session.run(c)


def test_a_fed_op_does_not_run_for_its_other_outputs_only_if_not_needed():
    a, b = tf.split(tf.constant([1.0, 2.0]), 2)
    with tf.Session() as session:
        assert session.run(a + b, {a: [10.0]}) == 12


def test_control_inputs_of_needed_ops_run_and_of_fed_ops_do_not():
    v = tf.Variable(0)
    bump = v.assign_add(1)
    with tf.control_dependencies([bump]):
        y = tf.identity(tf.constant(5) + 0)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(y, {y: 3})
        assert session.run(v) == 0
        session.run(y)
        assert session.run(v) == 1


def test_a_constant_passes_its_control_inputs_on():
    v = tf.Variable(0)
    with tf.control_dependencies([v.assign_add(1)]):
        c = tf.constant(5)
    y = c + 1
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == 6
        assert session.run(v) == 1
        assert session.run(c) == 5
        assert session.run(v) == 2
        session.run(c.op)
        assert session.run(v) == 3


def test_effects_run_in_the_order_of_creation():
    v = tf.Variable(0)
    steps = [tf.assign(v, i) for i in range(1, 6)]
    with tf.Session() as session:
        session.run(v.initializer)
        session.run([s.op for s in reversed(steps)])
        assert session.run(v) == 5


def test_a_cycle_is_told(graph):
    a = tf.identity(tf.constant(1), name="a")
    b = tf.identity(a, name="b")
    a.op._update_input(0, b)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="cycle"):
            session.run(b)


def test_a_control_cycle_is_told():
    a = tf.identity(tf.constant(1), name="a")
    with tf.control_dependencies([a]):
        b = tf.no_op(name="b")
    a.op._add_control_input(b)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="cycle"):
            session.run(b)


def test_edges_against_the_order_of_creation():
    first = tf.identity(tf.constant(1), name="first")
    later = tf.constant(41) + 0
    first.op._update_input(0, later)
    with tf.Session() as session:
        assert session.run(first + 1) == 42


def test_a_long_chain_does_not_exhaust_the_stack():
    x = tf.placeholder(tf.float32, [])
    y = x
    for _ in range(3000):
        y = y + 1
    with tf.Session() as session:
        assert session.run(y, {x: 0.0}) == 3000


def test_shapes_of_feeds_are_checked_before_anything_runs():
    v = tf.Variable(0)
    a, b = tf.placeholder(tf.float32, name="a"), tf.placeholder(tf.float32)
    with tf.control_dependencies([v.assign_add(1)]):
        c = tf.matmul(a, b, name="product")
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(c, {a: [[1.0, 2.0]], b: [[1.0]]})
        assert caught.value.op is c.op
        for part in ("Matrix size-incompatible", "[1,2]", "[1,1]", "product", __file__):
            assert part in str(caught.value)
        assert session.run(c, {a: [[2.0]], b: [[3.0]]}) == [[6]]


@pytest.mark.parametrize("through", ["value", "control", "fetch"])
def test_constants_wait_for_what_they_were_made_to_wait_for(through):
    v = tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer())
    with tf.control_dependencies([v.assign_add(1)]):
        first = tf.constant(10)
    with tf.control_dependencies([first]):
        second = tf.constant(20)
    with tf.control_dependencies([second]):
        by_control = v.read_value()  # has no constant of its own
    result = {"value": second + 1, "control": by_control, "fetch": second}[through]
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(result) == {"value": 21, "control": 1, "fetch": 20}[through]
        assert session.run(v) == 1


def test_a_step_waits_for_the_step_before_through_its_own_constant():
    v = tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer())

    def step(action):
        with tf.control_dependencies([action]):
            return v.assign_add(1)  # a constant in front of it holds the edge

    with tf.control_dependencies([step(tf.constant(1))]):
        action = tf.constant(2)
    last = step(action)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(last) == 2
