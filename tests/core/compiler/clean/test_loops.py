"""Loops: variables that nobody needs go, and what no turn changes goes around."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf
from tests.core.compiler.turns import check_without, counted, evaluated, expressions

CPU, ECHO = "/cpu:0", "/device:ECHO:0"
SOFT = tf.ConfigProto(allow_soft_placement=True)
WHILES = ("While", "StatelessWhile")
FEED = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


def loops_of(program):
    return [n for n in program.block.nodes if n.op in WHILES]


@pytest.mark.parametrize("device", [CPU, ECHO])
def test_only_what_a_result_needs_is_computed(device, compiled):
    with tf.device(device):
        x = tf.placeholder(tf.float32, [2, 2])
        a, b, _ = counted(3, lambda a, b, c: (a + b, b * 2.0, c + a), x, x, x)
    with tf.Session(config=SOFT) as session:
        for fetch, left in ((a, 3), (b, 2), ([a, b], 3)):
            (loop,) = loops_of(compiled(session, fetch, {x: FEED}))
            assert len(loop.inputs) == len(loop.out_dtypes) == len(loop.attrs["T"]) == left
        np.testing.assert_array_equal(session.run(a, {x: FEED}), FEED * 8)
        np.testing.assert_array_equal(session.run(b, {x: FEED}), FEED * 8)
        rows = session.explain(b, {x: FEED}).rows
        assert any(r.why == "loops: 2 of 4 variables are not needed" for r in rows)


def test_variables_that_take_turns_need_each_other(compiled):
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    n = tf.placeholder(tf.int32, [])
    a, _, _ = counted(n, lambda a, b, c: (b, a, a + c), x, y, x)
    with tf.Session() as session:
        for turns in range(4):
            feed = {x: 1.0, y: 2.0, n: turns}
            assert session.run(a, feed) == (2.0 if turns % 2 else 1.0)
        (loop,) = loops_of(compiled(session, a, feed))
        assert len(loop.inputs) == 4  # the count, its limit, a and b


def test_gradients_that_nobody_asked_for_are_not_computed(compiled):
    x = tf.placeholder(tf.float32, [3, 2, 2])
    w = tf.placeholder(tf.float32, [2, 2])
    turn = tf.constant(0)
    _, h = tf.while_loop(
        lambda i, h: i < 3,
        lambda i, h: (i + 1, tf.tanh(tf.matmul(h + tf.gather(x, i), w))),
        [turn, tf.zeros([2, 2])],
    )
    dx, dw = tf.gradients(h, [x, w])
    feed = {x: np.stack([FEED, FEED + 1, FEED - 1]), w: FEED}
    with tf.Session() as session:
        both, one = (loops_of(compiled(session, f, feed)) for f in ([dx, dw], dw))
        # The backward loop collects less; the forward one no longer records the index.
        assert [len(n.inputs) for n in one] < [len(n.inputs) for n in both]
        assert len(one[0].inputs) < len(both[0].inputs)
        np.testing.assert_array_equal(session.run(dw, feed), session.run([dx, dw], feed)[1])


@pytest.mark.parametrize("turns", [0, 2])
def test_what_no_turn_changes_goes_around(turns, compiled):
    x, n = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.int32, [])
    kept, _ = counted(n, lambda a, b: (a, a + b), x, x)
    y = kept + 1.0
    feed = {x: FEED, n: turns}
    with tf.Session() as session:
        assert not loops_of(compiled(session, y, feed))
        np.testing.assert_array_equal(session.run(y, feed), FEED + 1)
        # What is fetched is the caller's own.
        found = session.run(kept, feed)
        found[:] = 0
        np.testing.assert_array_equal(session.run(kept, feed), FEED)


@pytest.mark.parametrize("resource", [False, True])
def test_effects_and_what_they_need_stay(resource):
    v = tf.Variable(0.0, use_resource=resource)

    def body(a, b, c):
        with tf.control_dependencies([v.assign_add(b)]):
            return tf.identity(a), b * 2.0, c + 1.0

    a, _, _ = counted(3, body, tf.constant(5.0), tf.constant(1.0), tf.constant(0.0))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(a) == 5.0
        assert session.run(v) == 7.0


@pytest.mark.parametrize("grouped", [False, True])
def test_a_loop_that_is_run_for_its_own_sake(grouped, compiled):
    x = tf.placeholder(tf.float32, [2, 2])
    a, _, _ = counted(3, lambda a, b, c: (a + 1.0, b * 2.0, c + b), x, x, x)
    target = tf.group(a) if grouped else a.op
    with tf.Session() as session:
        (loop,) = loops_of(compiled(session, target, {x: FEED}))
        assert len(loop.inputs) == 4
        session.run(target, {x: FEED})


def test_an_op_that_fails_for_a_result_that_is_not_needed():
    x = tf.placeholder(tf.int32, [])
    a, b = counted(2, lambda a, b: (a + 1, b // x), tf.constant(0), tf.constant(1))
    with tf.Session() as session:
        assert session.run(a, {x: 0}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="by zero"):
            session.run(b, {x: 0})


def test_a_condition_keeps_its_variables():
    x = tf.placeholder(tf.float32, [])
    a, b, _ = tf.while_loop(
        lambda a, b, c: c < 10.0, lambda a, b, c: (a + 1.0, b, c + b), [0.0, x, x]
    )
    with tf.Session() as session:
        assert session.run(a, {x: 2.0}) == 4.0
        assert session.run(b, {x: 2.0}) == 2.0


def test_what_a_loop_in_a_loop_does_not_need(compiled):
    x = tf.placeholder(tf.float32, [])

    def outer(a, b):
        inner, _ = counted(2, lambda p, q: (p * 2.0, q + tf.sqrt(q)), a, b)
        return inner, b + 1.0

    a, _ = counted(3, outer, x, x)
    g = tf.gradients(a, x)[0]
    with tf.Session() as session:
        (loop,) = loops_of(compiled(session, a, {x: 3.0}))
        assert len(loop.inputs) == 2
        assert session.run([a, g], {x: 3.0}) == [192.0, 64.0]


def test_effects_of_a_loop_in_a_loop():
    v = tf.Variable(0.0, use_resource=True)

    def inner(p, q):
        with tf.control_dependencies([v.assign_add(q)]):
            return tf.identity(p), q * 2.0

    a, _ = counted(2, lambda a, b: counted(2, inner, a, b), tf.constant(1.0), tf.constant(1.0))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(a) == 1.0
        assert session.run(v) == 15.0


def test_second_derivatives(monkeypatch):
    x = tf.placeholder(tf.float32, [])
    _, y = counted(3, lambda a, b: (a * x, b * a), x, x)
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    results = []
    for off in ("", "loops"):
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", off)
        with tf.Session() as session:
            results += [session.run(f, {x: 1.5}) for f in (y, first, second)]
    # y = x^7
    np.testing.assert_allclose(results[:3], [1.5**7, 7 * 1.5**6, 42 * 1.5**5], rtol=1e-6)
    assert results[:3] == results[3:]


bodies = st.lists(
    expressions(lambda a, b: a, lambda a, b: tf.identity(b), longest=4), min_size=1, max_size=5
)


@given(bodies, st.integers(0, 3), st.sets(st.integers(0, 9), min_size=1), st.booleans())
def test_narrowed_or_not_the_results_are_the_same(body, turns, wanted, differentiate):
    with tf.Graph().as_default():
        x, n = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.int32, [])
        start = [x * (k + 1.0) for k in range(len(body))]
        ends = counted(n, lambda *v: [evaluated(e, *v) for e in body], *start)
        fetches = [ends[i % len(ends)] for i in sorted(wanted)]
        if differentiate:
            fetches += [g for g in tf.gradients(fetches, [x, start[0]]) if g is not None]
        check_without("loops", fetches, {x: FEED, n: turns})
