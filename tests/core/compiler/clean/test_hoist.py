"""Hoist: what every turn of a loop computes alike is computed once, before its first turn."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf
from opdock import plugin
from opdock.plugin import GraphPass, hookimpl
from tests.core.compiler.turns import check_without, counted, evaluated, expressions

CPU, ECHO = "/cpu:0", "/device:ECHO:0"
SOFT = tf.ConfigProto(allow_soft_placement=True)
NAME = "hoist-for-tests"
FEED = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


@pytest.fixture
def programs():
    """The op types of every program that is compiled in the test, bodies included."""
    found = []

    def look(block):
        found.append(sorted(n.op for n in block.nodes if n.op not in ("Const", "_Feed")))

    @hookimpl
    def opdock_graph_passes():
        yield GraphPass(name="look", stage="after_place", run=look)

    plugin.register(SimpleNamespace(opdock_graph_passes=opdock_graph_passes), NAME)
    yield found
    plugin.unregister(NAME)


def repeat(turns, body, start):
    return counted(turns, lambda v: (body(v),), start)[0]


@pytest.mark.parametrize("device", [CPU, ECHO])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_what_no_turn_changes_is_computed_once(device, turns, programs):
    with tf.device(device):
        x, w = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.float32, [2, 2])
        n = tf.placeholder(tf.int32, [])
        y = repeat(n, lambda v: v + tf.matmul(tf.exp(w), tf.sqrt(w)), x)
    weights = np.abs(FEED)
    with tf.Session(config=SOFT) as session:
        for _ in range(2):
            got = session.run(y, {x: FEED, w: weights, n: turns})
            want = FEED + turns * (np.exp(weights) @ np.sqrt(weights))
            np.testing.assert_allclose(got, want, rtol=1e-5)
            weights *= 2
    assert ["Exp", "MatMul", "Sqrt"] in programs
    assert ["AddV2", "AddV2"] in programs  # of the count, and of the value


def test_what_a_turn_does_not_reach_does_not_fail():
    x, n = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    y = repeat(n, lambda v: v + 6 // x, tf.constant(1))
    with tf.Session() as session:
        assert session.run(y, {x: 0, n: 0}) == 1
        assert session.run(y, {x: 2, n: 2}) == 7
        with pytest.raises(tf.errors.InvalidArgumentError, match="by zero"):
            session.run(y, {x: 0, n: 1})


def test_a_condition_has_a_part_that_stays_too(programs):
    x = tf.placeholder(tf.float32, [2, 2])
    _, y = tf.while_loop(
        lambda i, v: v < tf.reduce_sum(tf.exp(x)), lambda i, v: (i + 1, v * 2.0),
        [tf.constant(0), tf.constant(1.0)],
    )  # fmt: skip
    with tf.Session() as session:
        assert session.run(y, {x: FEED}) == 16.0
        assert session.run(y, {x: FEED + 2}) == 128.0
    assert ["Exp", "Sum"] in programs
    assert ["Less"] in programs


def test_what_depends_on_a_turn_or_has_an_effect_stays():
    v = tf.Variable(1.0, use_resource=True)
    x = tf.placeholder(tf.float32, [])

    def body(total):
        with tf.control_dependencies([v.assign_add(x)]):
            return total + v.read_value() * tf.sqrt(x)

    y = repeat(3, body, tf.constant(0.0))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y, {x: 4.0}) == 2.0 * (5 + 9 + 13)
        assert session.run(v) == 13.0


def test_random_numbers_are_drawn_every_turn():
    x = tf.placeholder(tf.float32, [8])

    def draw(v):
        return tf.concat([v[8:], tf.random_uniform(tf.shape(x)) + tf.exp(x)], 0)

    noise = repeat(2, draw, tf.zeros([16]))
    with tf.Session() as session:
        first, second = np.split(session.run(noise, {x: np.zeros(8)}), 2)
    assert (first != second).any()


def test_a_guarded_op_stays_behind_its_guard():
    x = tf.placeholder(tf.float32, [])

    def body(v):
        with tf.control_dependencies([tf.assert_greater(x, 0.0, message="not positive")]):
            return v + tf.log(x)

    with tf.Session() as session:
        y = repeat(2, body, tf.constant(0.0))
        assert session.run(y, {x: 1.0}) == 0.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="not positive"):
            session.run(y, {x: -1.0})


def test_what_only_takes_more_memory_stays(programs):
    x, rows = tf.placeholder(tf.float32, [64, 64]), tf.placeholder(tf.float32, [64])
    y = repeat(3, lambda v: v * tf.tile(rows[None], [64, 1]), x)
    with tf.Session() as session:
        feed = {x: np.ones((64, 64)), rows: np.full(64, 2.0)}
        np.testing.assert_array_equal(session.run(y, feed), np.full((64, 64), 8.0))
    assert any("Tile" in p and "AddV2" in p for p in programs)


def test_a_result_that_no_turn_changes():
    """Fetched from the loop it is the caller's, and of no turns it is what went in."""
    x, n = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.int32, [])
    y = repeat(n, lambda v: tf.exp(x), x)
    with tf.Session() as session:
        for turns, want in ((0, FEED), (1, np.exp(FEED)), (3, np.exp(FEED))):
            got = session.run(y, {x: FEED, n: turns})
            np.testing.assert_allclose(got, want, rtol=1e-6)
            got[:] = 0


def test_loops_in_loops():
    x = tf.placeholder(tf.float32, [2, 2])

    def outer(v):
        return repeat(2, lambda u: u + tf.matmul(v, tf.exp(x)), v * 0.5)

    y = repeat(3, outer, x)
    g = tf.gradients(y, x)[0]

    def numpy(a):
        v = a
        for _ in range(3):
            v = 0.5 * v + 2 * v @ np.exp(a)
        return v

    with tf.Session() as session:
        got, slope = session.run([y, g], {x: FEED})
    np.testing.assert_allclose(got, numpy(FEED), rtol=1e-5)
    wide = FEED.astype(np.float64)
    for i, j in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[i, j] = 1e-6
        want = (numpy(wide + step) - numpy(wide - step)).sum() / 2e-6
        np.testing.assert_allclose(slope[i, j], want, rtol=1e-4)


def test_a_trace_shows_both_parts():
    x = tf.placeholder(tf.float32, [2, 2])
    y = repeat(3, lambda v: v * 0.5 + tf.matmul(x, x, name="once"), x)
    with tf.Session() as session:
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        got = session.run(y, {x: FEED}, options=options, run_metadata=metadata)
        np.testing.assert_allclose(got, session.run(y, {x: FEED}), rtol=1e-6)
    names = [s.node_name for d in metadata.step_stats.dev_stats for s in d.node_stats]
    assert sum("once" in name for name in names) == 1


bodies = expressions(
    lambda a, b: tf.identity(a), lambda a, b: a * tf.reduce_mean(b, 0),
    lambda a, b: tf.reshape(b, tf.shape(a)), lambda a, b: tf.transpose(a) + b,
    longest=10,
)  # fmt: skip


@given(bodies, st.integers(0, 3), st.booleans(), st.booleans())
def test_hoisted_or_not_the_results_are_the_same(expression, turns, known, differentiate):
    def body(v):
        return evaluated(expression, x, outside, v) + v * 0.5

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2] if known else [None, None])
        outside, n = tf.cos(x), tf.placeholder(tf.int32, [])
        fetches = [
            tf.while_loop(
                lambda i, v: i < n, lambda i, v: (i + 1, body(v)), [tf.constant(0), x],
                [tf.TensorShape([]), x.shape],
            )[1]
        ]  # fmt: skip
        if differentiate:
            fetches += tf.gradients(fetches, [x])
        check_without("hoist", fetches, {x: FEED, n: turns})
