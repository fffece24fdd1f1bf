"""Dead: what nobody needs is not waited for."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def kinds(program):
    return sorted(n.op for n in program.block.nodes if n.op not in ("Const", "_Feed"))


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2])


FEED = np.ones(2, np.float32)


def test_a_value_that_nobody_uses_is_not_computed(x, compiled):
    with tf.control_dependencies([tf.exp(x), tf.group(tf.log(x))]):
        y = tf.negative(x)
    with tf.Session() as session:
        assert kinds(compiled(session, y, {x: FEED})) == ["Neg"]
        rows = session.explain(y, {x: FEED}).rows
        assert {r.op: r.why for r in rows if r.how == "removed"} == {
            "Exp": "dead: only waited for", "Log": "dead: only waited for",
            "NoOp": "dead: only waited for",
        }  # fmt: skip


def test_the_switch(x, compiled, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "dead,cluster")
    with tf.control_dependencies([tf.exp(x)]):
        y = tf.negative(x)
    with tf.Session() as session:
        assert kinds(compiled(session, y, {x: FEED})) == ["Exp", "Neg"]


def test_what_can_fail_runs(x):
    with tf.control_dependencies([tf.check_numerics(x, "bad"), tf.Assert(x[0] > 0, [x])]):
        y = tf.negative(x)
    i = tf.placeholder(tf.int32, [])
    with tf.control_dependencies([1 // i]):
        z = tf.negative(i)
    with tf.Session() as session:
        assert list(session.run(y, {x: FEED})) == [-1, -1]
        for bad in (np.nan, -1.0):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {x: [bad, 1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(z, {i: 0})


def test_a_gradient_that_an_optimizer_only_waits_for(compiled):
    """The gradient by a network's input, which TF's optimizers tie to that by the filter."""
    x, w = tf.placeholder(tf.float32, [1, 4, 4, 2]), tf.get_variable("w", [2, 2, 2, 3])
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y * y))
    assert "Conv2DBackpropInput" in {op.type for op in tf.get_default_graph().get_operations()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        ops = kinds(compiled(session, train, {x: np.ones([1, 4, 4, 2], np.float32)}))
        assert "Conv2DBackpropFilter" in ops and "Conv2DBackpropInput" not in ops


def test_what_a_target_groups_runs(x, compiled):
    """Whoever runs a group of values wants them computed."""
    group = tf.group(tf.exp(x), tf.group(tf.log(x)))
    with tf.Session() as session:
        assert {"Exp", "Log"} <= set(kinds(compiled(session, group, {x: FEED})))


def test_order_is_kept_through_what_goes():
    v = tf.Variable(1.0)
    with tf.control_dependencies([tf.exp(v.assign_add(1.0)), tf.no_op()]):
        barrier = tf.no_op()
    with tf.control_dependencies([barrier]):
        y = v.read_value() * 10.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert [session.run(y) for _ in range(3)] == [20, 30, 40]


def test_a_group_between_many_and_many_stays(x, compiled):
    v = [tf.Variable(0.0) for _ in range(4)]
    barrier = tf.group(*[w.assign_add(1.0) for w in v])
    with tf.control_dependencies([barrier]):
        reads = [w.read_value() for w in v]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert "NoOp" in kinds(compiled(session, reads, {}))
        assert [session.run(reads) for _ in range(2)] == [[1.0] * 4, [2.0] * 4]
