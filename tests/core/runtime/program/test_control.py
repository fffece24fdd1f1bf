"""`cond` and `while_loop` as they run: laziness, nesting, variables, shapes, devices."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

CPU, ECHO = "/cpu:0", "/device:ECHO:0"
SOFT = tf.ConfigProto(allow_soft_placement=True)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def start(config=SOFT):
    session = tf.Session(config=config)
    session.run(tf.global_variables_initializer())
    return session


devices = pytest.mark.parametrize("device", [CPU, ECHO])
flavours = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


@devices
def test_cond_runs_one_branch(device):
    with tf.device(device):
        p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
        y = tf.cond(p, lambda: x * 2.0, lambda: x - 1.0)
    with start() as session:
        assert list(session.run(y, {p: True, x: [1, 2]})) == [2, 4]
        assert list(session.run(y, {p: False, x: [1, 2]})) == [0, 1]


def test_only_the_taken_branch_has_effects():
    a, b = tf.Variable(0), tf.Variable(0)
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: a.assign_add(1), lambda: b.assign_add(10))
    with start() as session:
        session.run(y, {p: True})
        session.run(y, {p: True})
        session.run(y, {p: False})
        assert session.run([a, b]) == [2, 10]


def test_what_is_made_outside_a_branch_always_runs():
    v = tf.Variable(0)
    outside = v.assign_add(1)
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.identity(outside), lambda: tf.constant(-1))
    with start() as session:
        assert session.run(y, {p: False}) == -1
        assert session.run(v) == 1


def test_the_branch_not_taken_may_be_impossible():
    x = tf.placeholder(tf.float32, [None])
    y = tf.cond(tf.size(x) > 3, lambda: tf.reshape(x, [2, 2]), lambda: tf.zeros([2, 2]))
    with start() as session:
        assert session.run(y, {x: [1.0]}).sum() == 0
        assert session.run(y, {x: [1.0, 2.0, 3.0, 4.0]}).sum() == 10


@pytest.mark.parametrize("wrong", [True, False, 1])
def test_python_values_are_no_predicates(wrong):
    with pytest.raises((TypeError, ValueError)):
        tf.cond(wrong, lambda: tf.constant(1), lambda: tf.constant(2))


def test_branches_that_do_not_match():
    p = tf.placeholder(tf.bool, [])
    with pytest.raises((TypeError, ValueError)):
        tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(2.0))
    with pytest.raises((TypeError, ValueError)):
        tf.cond(p, lambda: (tf.constant(1), tf.constant(1)), lambda: tf.constant(2))
    with pytest.raises(TypeError, match="callable"):
        tf.cond(p, tf.constant(1), lambda: tf.constant(2))


def test_structures_of_results():
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: {"a": tf.constant(1), "b": [tf.constant(2)]},
                lambda: {"a": tf.constant(3), "b": [tf.constant(4)]}, strict=True)  # fmt: skip
    z = tf.cond(p, lambda: [tf.constant(5)], lambda: [tf.constant(6)])
    with start() as session:
        assert session.run([y, z], {p: True}) == [{"a": 1, "b": [2]}, 5]


def test_nested_conds():
    p, q = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.int32, [])
    inner = lambda k: tf.cond(q, lambda: x + k, lambda: x - k)
    y = tf.cond(p, lambda: inner(1), lambda: inner(10))
    with start() as session:
        got = [session.run(y, {p: a, q: b, x: 100}) for a in (0, 1) for b in (0, 1)]
    assert got == [90, 110, 99, 101]


@devices
@flavours
@pytest.mark.parametrize("home", [CPU, ECHO])
def test_variables_in_branches_live_anywhere(device, home, resource):
    with tf.device(home):
        v = tf.Variable([1.0, 2.0], use_resource=resource)
    p = tf.placeholder(tf.bool, [])
    with tf.device(device):
        x = tf.placeholder(tf.float32, [2])
        y = tf.cond(p, lambda: v * x, lambda: tf.identity(v.assign_add(x)))
    with start() as session:
        assert list(session.run(y, {p: True, x: [3, 3]})) == [3, 6]
        assert list(session.run(y, {p: False, x: [1, 1]})) == [2, 3]
        assert list(session.run(v)) == [2, 3]
        assert list(session.run(y, {p: True, x: [1, 1]})) == [2, 3]


@devices
@flavours
@pytest.mark.parametrize("home", [CPU, ECHO])
def test_variables_in_loops_live_anywhere(device, home, resource):
    with tf.device(home):
        v = tf.Variable([1.0, 2.0], use_resource=resource)
    with tf.device(device):

        def body(i, total):
            with tf.control_dependencies([v.assign_add([1.0, 1.0])]):
                return i + 1, total + v.read_value()

        _, y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([2])])
    with start() as session:
        assert list(session.run(y)) == [2 + 3 + 4, 3 + 4 + 5]
        assert list(session.run(v)) == [4, 5]


@devices
def test_while_loop(device):
    with tf.device(device):
        n = tf.placeholder(tf.int32, [])
        x = tf.placeholder(tf.float32, [2])
        i, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), [0, tf.ones([2])])
    with start() as session:
        for turns in (0, 1, 5):
            count, got = session.run([i, y], {n: turns, x: [2, 3]})
            assert count == turns
            np.testing.assert_array_equal(got, [2.0**turns, 3.0**turns])


def test_a_loop_within_a_loop_within_a_branch():
    n = tf.placeholder(tf.int32, [])

    def outer(i, total):
        _, inside = tf.while_loop(lambda j, _: j < i, lambda j, t: (j + 1, t + j), [0, 0])
        return i + 1, total + tf.cond(tf.equal(i % 2, 0), lambda: inside, lambda: -inside)

    _, y = tf.while_loop(lambda i, _: i < n, outer, [0, 0])
    total = 0
    for i in range(7):
        total += sum(range(i)) * (1 if i % 2 == 0 else -1)
    with start() as session:
        assert session.run(y, {n: 7}) == total


def test_shapes_may_change_where_invariants_say_so():
    x = tf.constant([1.0])
    _, y = tf.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, tf.concat([y, y + 1.0], 0)), [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )  # fmt: skip
    assert y.shape.as_list() == [None]
    with start() as session:
        assert list(session.run(y)) == [1, 2, 2, 3, 2, 3, 3, 4]
    with pytest.raises(ValueError, match="shape"):
        tf.while_loop(lambda y: True, lambda y: tf.concat([y, y], 0), [x])


def test_what_a_loop_refuses():
    with pytest.raises(ValueError, match="No loop variables"):
        tf.while_loop(lambda: True, lambda: (), [])
    with pytest.raises(TypeError, match="callable"):
        tf.while_loop(True, lambda x: x, [1])
    with pytest.raises((TypeError, ValueError)):
        tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0])
    with pytest.raises((TypeError, ValueError)):
        tf.while_loop(lambda i, j: i < 3, lambda i, j: (i,), [0, 0])


def test_maximum_iterations():
    y = tf.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=5)
    with start() as session:
        assert session.run(y) == 5


def test_structured_loop_variables():
    y = tf.while_loop(
        lambda s: s["i"] < 3, lambda s: [{"i": s["i"] + 1, "x": [s["x"][0] * 2.0]}],
        [{"i": tf.constant(0), "x": [tf.constant(1.0)]}],
    )  # fmt: skip
    with start() as session:
        got = session.run(y)
        assert got == [{"i": 3, "x": [8.0]}]


def test_an_error_in_a_body_names_the_op_and_the_line():
    x = tf.placeholder(tf.int32, [])

    def body(i):
        return i + tf.gather([1, 1], i + x, name="inside")

    y = tf.while_loop(lambda i: i < 9, body, [0])
    with start() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(y, {x: 0})
    assert "inside" in str(caught.value)
    assert __file__ in str(caught.value)


def test_an_error_after_some_turns_keeps_what_they_did():
    v = tf.Variable(0)

    def body(i):
        with tf.control_dependencies([v.assign_add(1)]):
            return i + tf.gather([1, 1, 1], i)

    y = tf.while_loop(lambda i: i < 9, body, [0])
    with start() as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(y)
        assert session.run(v) == 4


def test_results_of_a_loop_are_the_callers():
    x = tf.placeholder(tf.float32, [3])
    _, y = tf.while_loop(lambda i, _: i < tf.cast(x[0], tf.int32), lambda i, y: (i + 1, y), [0, x])
    c = tf.cond(x[0] > 0, lambda: x, lambda: x)
    with start() as session:
        fed = np.zeros(3, np.float32)
        for got in session.run([y, c], {x: fed}):
            got[:] = 5
        assert list(fed) == [0, 0, 0]
        _, held = session.run([y, c], {x: fed})
        fed[:] = 9
        assert list(held) == [0, 0, 0]


def test_steps_of_a_loop_do_not_overwrite_each_other():
    x = tf.placeholder(tf.float32, [64, 64])
    body = lambda i, a, b: (i + 1, b * 0.5 + 1.0, a + b * 2.0)
    _, a, b = tf.while_loop(lambda i, *_: i < 10, body, [0, x, x * 2.0])
    value = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    p, q = value, value * 2
    for _ in range(10):
        p, q = q * np.float32(0.5) + 1, p + q * np.float32(2)
    with start() as session:
        for _ in range(3):
            got = session.run([a, b], {x: value})
            np.testing.assert_array_equal(got[0], p)
            np.testing.assert_array_equal(got[1], q)


def test_case_and_switch():
    x = tf.placeholder(tf.int32, [])
    y = tf.case([(x < 1, lambda: tf.constant(10)), (x < 2, lambda: tf.constant(20))],
                default=lambda: tf.constant(30))  # fmt: skip
    with start() as session:
        assert [session.run(y, {x: k}) for k in (0, 1, 5)] == [10, 20, 30]


def test_random_ops_in_a_loop_differ_from_turn_to_turn():
    body = lambda i, y: (i + 1, tf.concat([y, tf.random_uniform([1])], 0))
    _, y = tf.while_loop(
        lambda i, _: i < 5, body, [0, tf.zeros([0])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )  # fmt: skip
    with start() as session:
        assert len(set(session.run(y))) == 5


def test_a_predicate_that_turns_out_to_be_no_scalar():
    p = tf.placeholder(tf.bool)
    y = tf.cond(p, lambda: 1, lambda: 2)
    z = tf.while_loop(lambda _: p, lambda i: i + 1, [0])
    with start() as session:
        for fetch in (y, z):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"but it has shape \[2\]"):
                session.run(fetch, {p: [True, False]})
