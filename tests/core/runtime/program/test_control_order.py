"""What runs in branches and loops, and what waits for what across their borders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

FED = np.ones((2, 2), np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetches, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


flavours = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


@flavours
def test_what_no_result_depends_on_does_not_run(resource):
    v, p = tf.Variable(0, use_resource=resource), tf.placeholder(tf.bool, [])

    def idle(*results):
        v.assign_add(1)
        return results or tf.constant(1)

    y = tf.cond(p, idle, lambda: tf.constant(2))
    z = tf.while_loop(lambda i: i < 3, lambda i: idle(i + 1), [0])
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([y, z], {p: True}) == [1, 3]
        assert session.run(v) == 0


def test_a_branch_needs_only_what_its_results_need():
    never, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])

    def branch():
        with tf.control_dependencies([never]):
            assert tf.square(never) is not None
        return tf.constant(5)

    assert run(tf.cond(p, branch, lambda: tf.constant(1)), {p: True}) == 5


def test_an_operation_as_the_result_of_a_branch():
    v, p = tf.Variable(1), tf.placeholder(tf.bool, [])
    done = tf.cond(p, lambda: tf.group(v.assign_add(1)), lambda: tf.no_op())
    assert done.dtype is tf.bool
    with tf.control_dependencies([done]):
        after = v.read_value()
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([done, after], {p: True}) == [True, 2]
        assert session.run([done, after], {p: False}) == [False, 2]


def awaiting(things, value):
    with tf.control_dependencies(things):
        return value + 1.0


@pytest.mark.parametrize("body", ["cond", "while", "map", "cond in while", "while in while"])
def test_bodies_wait_for_what_is_outside(body):
    v = tf.Variable(0.0)
    x, p = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.bool, [])
    first = [v.assign_add(1.0), tf.no_op(), x, p]
    turns = lambda fn, y: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, fn(y)), [0, y])[1]
    one = tf.constant(1.0)
    y, expected = {
        "cond": lambda: (tf.cond(p, lambda: awaiting(first, one), lambda: one), 2),
        "while": lambda: (turns(lambda a: awaiting([*first, a], a), one), 3),
        "map": lambda: (tf.map_fn(lambda e: awaiting([*first, e], e), tf.ones([2])), [2, 2]),
        "cond in while": lambda: (
            turns(lambda a: tf.cond(p, lambda: awaiting([*first, a], a), lambda: a), one), 3,
        ),
        "while in while": lambda: (
            turns(lambda a: turns(lambda b: awaiting([*first, a, b], b), a), one), 5,
        ),
    }[body]()  # fmt: skip
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(y, {x: FED, p: True}), expected)
        assert session.run(v) == 1.0


def test_control_flow_waits_for_what_is_around_it():
    v, p = tf.Variable(0.0), tf.placeholder(tf.bool, [])
    with tf.control_dependencies([v.assign(3.0), p]):
        y = tf.cond(p, lambda: v.read_value(), lambda: tf.constant(0.0))
        z = tf.while_loop(lambda i: i < 1.0, lambda i: i + v.read_value(), [0.0])
    assert run([y, z], {p: True}) == [3.0, 3.0]


def test_who_waits_for_a_loop_waits_for_its_effects():
    v = tf.Variable(0)

    def body(i, a):
        return i + 1, a + tf.assign_add(v, 1)

    _, a = tf.while_loop(lambda i, _: i < 3, body, [0, 0])
    with tf.control_dependencies([a]):
        after = tf.identity(v.read_value())

    def outer(i):
        _, inner = tf.while_loop(lambda j, _: j < 2, body, [0, 0])
        with tf.control_dependencies([inner]):
            return i + 1

    around = tf.while_loop(lambda i: i < 2, outer, [0])
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(after) == 3
        assert session.run(around) == 2
        assert session.run(v) == 7


def test_a_condition_with_an_effect():
    v = tf.Variable(0)
    y = tf.while_loop(lambda i: tf.assign_add(v, 1) < 4, lambda i: i + 1, [0])
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == 3
        assert session.run(v) == 4


def test_what_a_loop_writes_it_reads():
    v = tf.Variable(2.0)

    def until(_):
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            return tf.identity(v)

    def squared(i):
        done = tf.cond(i < 9, lambda: tf.assign(v, tf.square(v)), lambda: v)
        with tf.control_dependencies([done]):
            return i + 1

    def around(i, before, after):
        x = v * 1.0
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            return i + 1, before + x, after + v * 1.0

    for y, result, left in [
        (tf.while_loop(lambda _: v < 10.0, until, [v]), 10, 10),
        (tf.while_loop(lambda i: i < 4, squared, [0]), 4, 65536),
        (tf.while_loop(lambda i, *_: i < 3, around, [0, 0.0, 0.0]), (3, 9, 12), 5),
    ]:
        with tf.Session() as session:
            session.run(v.initializer)
            assert session.run(y) == result
            assert session.run(v) == left


def test_gradients_see_what_each_turn_read():
    v = tf.Variable(2.0)

    def body(i, a):
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            return i + 1, a * v

    y = tf.while_loop(lambda i, _: i < 3, body, [0, 1.0])[1]
    assert run([y, *tf.gradients(y, v)]) == [3 * 4 * 5, 3 * 4 + 3 * 5 + 4 * 5]


def test_a_branch_keeps_the_value_that_it_waited_for_before_it_writes() -> None:
    with tf.Graph().as_default():
        array = tf.Variable(lambda: tf.constant([1.0, 2.0]), validate_shape=False)
        taken = tf.placeholder_with_default(True, [])

        def grown() -> Any:
            before = array.value()
            with tf.control_dependencies([before]):
                larger = tf.assign(array, tf.zeros([4]), validate_shape=False)
            with tf.control_dependencies([larger]):
                copied = array[:2].assign(before[:2])
            with tf.control_dependencies([copied]):
                return tf.no_op()

        step = tf.cond(taken, grown, tf.no_op)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(step)
            assert sess.run(array).tolist() == [1, 2, 0, 0]
            sess.run(step, {taken: False})
            assert sess.run(array).tolist() == [1, 2, 0, 0]
