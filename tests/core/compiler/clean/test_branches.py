"""Branches: a condition that is known leaves one way to go."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def kinds(program):
    return sorted(n.op for n in program.block.nodes if n.op not in ("Const", "_Feed"))


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_that_is_taken(condition, compiled):
    x = tf.placeholder(tf.float32, [2])
    y = tf.cond(tf.constant(condition), lambda: tf.exp(x), lambda: tf.sqrt(x))
    feed = {x: np.array([1.0, 4.0], np.float32)}
    with tf.Session() as session:
        assert kinds(compiled(session, y, feed)) == ["Exp" if condition else "Sqrt"]
        want = np.exp(feed[x]) if condition else np.sqrt(feed[x])
        np.testing.assert_allclose(session.run(y, feed), want, rtol=1e-6)
        rows = session.explain(y, feed).rows
        assert any(r.how == "removed" and r.why == "branches: its condition is known" for r in rows)


def test_conditions_that_follow_from_shapes_and_each_other(compiled):
    x = tf.placeholder(tf.float32, [None])

    def inner():
        return tf.cond(tf.size(x) > 1, lambda: x * 2.0, lambda: x * 3.0)

    y = tf.cond(tf.equal(tf.rank(x), 1), inner, lambda: tf.zeros([1]))
    with tf.Session() as session:
        for feed, want in (([1.0], [3.0]), ([1.0, 2.0], [2.0, 4.0])):
            assert kinds(compiled(session, y, {x: feed})) == ["Mul"]
            assert list(session.run(y, {x: feed})) == want


def test_effects_of_the_branch_run_once_and_in_order():
    v = tf.Variable(1.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.cond(tf.constant(True), lambda: v.assign_add(10.0, read_value=True) + 0.0,
                    lambda: tf.constant(0.0))  # fmt: skip
    with tf.control_dependencies([y]):
        z = v.read_value() * 2.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([y, z]) == [12.0, 24.0]
        assert session.run(v) == 12.0


def test_what_only_the_other_branch_uses_keeps_its_effect():
    v = tf.Variable(1.0, use_resource=True)
    added = tf.identity(v.assign_add(1.0, read_value=True))
    y = tf.cond(tf.constant(True), lambda: tf.constant(7.0), lambda: added)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == 7.0
        assert session.run(v) == 2.0


def test_random_numbers_are_the_same(monkeypatch):
    def draw():
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            y = tf.cond(tf.constant(True), lambda: tf.random_normal([4], seed=1),
                        lambda: tf.zeros([4]))  # fmt: skip
            with tf.Session() as session:
                return [session.run(y) for _ in range(3)]

    resolved = draw()
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "branches")
    np.testing.assert_array_equal(resolved, draw())


@pytest.mark.parametrize("trained", [True, False])
def test_gradients_go_through(trained, monkeypatch):
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(tf.constant(trained), lambda: x * x, lambda: x * 3.0)
    g = tf.gradients(y, x)[0]
    results = []
    for off in ("", "branches"):
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", off)
        with tf.Session() as session:
            results.append(session.run([y, g], {x: 5.0}))
    assert results[0] == results[1] == ([25.0, 10.0] if trained else [15.0, 3.0])


def test_a_loop_that_never_turns(compiled):
    x = tf.placeholder(tf.float32, [2])
    i, y = tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, tf.exp(y)), [0, x])
    z = y * 2.0
    with tf.Session() as session:
        assert kinds(compiled(session, z, {x: [1.0, 2.0]})) == ["Mul"]
        assert list(session.run(z, {x: [1.0, 2.0]})) == [2.0, 4.0]
        rows = session.explain(z, {x: [1.0, 2.0]}).rows
        assert any(r.why == "branches: its condition is false at once" for r in rows)
        assert session.run(i) == 0


def test_a_loop_that_turns_stays(compiled):
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), [0, x])
    n = tf.placeholder(tf.int32, [])
    _, z = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2.0), [0, x])
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 8.0
        assert session.run(z, {x: 1.0, n: 0}) == 1.0
        assert session.run(z, {x: 1.0, n: 2}) == 4.0


def test_constants_of_a_known_branch_wait_for_what_the_conditional_waited_for():
    x = tf.placeholder(tf.bool, [])
    with tf.control_dependencies([tf.Assert(x, ["no"])]):
        y = tf.cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(2))
    with tf.Session() as session:
        assert session.run(y, {x: True}) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="no"):
            session.run(y, {x: False})
