"""Schedule: a straight line in which each variable is read once between two writes."""

from __future__ import annotations

import opdock as tf


def reads(program):
    return [s.node.name for s in program.schedule.steps if s.kind == "read"]


def test_readers_share_a_read_until_something_writes(compiled):
    v = tf.Variable([1.0, 2.0], name="v")
    total = v + v * 2.0 - v
    with tf.control_dependencies([total]):
        write = v.assign_add([1.0, 1.0])
    with tf.control_dependencies([write]):
        after = v.read_value() * 3.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert len(reads(compiled(session, total))) == 1
        assert len(reads(compiled(session, [total, after]))) == 2
        assert [list(x) for x in session.run([total, after])] == [[2, 4], [6, 9]]


def test_a_step_uses_only_what_came_before(compiled):
    x = tf.placeholder(tf.float32, [4])
    y = tf.add_n(tf.split(tf.exp(x), 2)) + tf.reduce_sum(x)
    with tf.Session() as session:
        plan = compiled(session, y, {x: [1.0] * 4}).schedule
    known = set(plan.params) | set(plan.presets)
    for step in plan.steps:
        assert set(step.inputs) <= known
        known |= set(step.outputs)
    assert set(plan.fetches) <= known
    assert max(known) < plan.n_slots


def test_the_value_of_an_update_is_read_after_it():
    v = tf.Variable(1.0)
    first = v.assign_add(1.0)
    with tf.control_dependencies([first]):
        second = v.assign(v.read_value() * 10.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(second) == 20
        assert session.run(v) == 20
