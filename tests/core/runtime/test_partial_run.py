"""Session.partial_run: a step in parts, of which none runs twice."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_feeds_and_fetches_in_turns():
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    r1 = a + b
    r2 = r1 * c
    with tf.Session() as session:
        handle = session.partial_run_setup([r1, r2], [a, b, c])
        assert session.partial_run(handle, r1, {a: 1, b: 2}) == 3
        assert session.partial_run(handle, r2, {c: 17}) == 51
        with pytest.raises(tf.errors.InvalidArgumentError, match="setup"):
            session.partial_run(handle, r2)
        # As in TF's documentation: a fetched value may come back changed, as a feed.
        handle = session.partial_run_setup([r1, r2], [a, b, c, r1])
        with pytest.raises(tf.errors.InvalidArgumentError, match="has not been fed"):
            session.partial_run(handle, r2, {c: 2})


def test_stateful_ops_run_once():
    calls = []
    x = tf.py_func(lambda: (calls.append(1), 2.5)[1], [], tf.float64)
    r = tf.random_uniform([], dtype=tf.float64)
    p = tf.placeholder(tf.float64, [])
    first, second = x + r, (x + r) * p
    with tf.Session() as session:
        handle = session.partial_run_setup([first, second, r], [p])
        value = session.partial_run(handle, first)
        drawn = session.partial_run(handle, r)
        assert (
            session.partial_run(handle, second, {p: 2.0})
            == 2 * value
            == pytest.approx(2 * (2.5 + drawn))
        )
        assert calls == [1]


def test_what_was_not_announced_or_had_its_turn():
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y, z = a * 2, b * 3
    with tf.Session() as session:
        handle = session.partial_run_setup([y, z], [a, b])
        session.partial_run(handle, y, {a: 1})
        for fetch, feed in ((y, None), (z, {a: 1}), (a + 1, None)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="already|not specified"):
                session.partial_run(handle, fetch, feed)


def test_effects_that_would_happen_twice_are_refused():
    v = tf.get_variable("v", initializer=0.0)
    bump = tf.assign_add(v, 1.0)
    with tf.control_dependencies([bump]):
        after = tf.constant(3.0) + tf.placeholder_with_default(1.0, [])
    with tf.Session() as session:
        session.run(v.initializer)
        handle = session.partial_run_setup([bump.op, after], [])
        session.partial_run(handle, bump.op)
        with pytest.raises(tf.errors.UnimplementedError, match="must not happen twice"):
            session.partial_run(handle, after)
        assert session.run(v) == 1.0


def test_what_had_its_turn_and_what_was_never_announced():
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    total = a + b
    with tf.Session() as session:
        handle = session.partial_run_setup([a * 2, total], [a, b])
        double = session.graph.get_tensor_by_name("mul:0")
        session.partial_run(handle, double, {a: 1})
        invalid = tf.errors.InvalidArgumentError
        with pytest.raises(invalid, match=r"has already been fed\.$"):
            session.partial_run(handle, total, {a: 1, b: 2})
        with pytest.raises(invalid, match=r"has already been fetched\.$"):
            session.partial_run(handle, double, {b: 2})
        other = tf.constant(1.0)
        handle = session.partial_run_setup([total], [a, b])
        with pytest.raises(invalid, match=r"was not specified in partial_run_setup\.$"):
            session.partial_run(handle, other, {a: 1})
        with pytest.raises(invalid, match="at least one target"):
            session.partial_run_setup([], [a])


def test_what_has_several_tensors_is_announced_whole():
    sparse = tf.sparse_placeholder(tf.float32, [2, 2])
    ragged = tf.ragged.placeholder(tf.int32, 1)
    total, rows = tf.sparse.reduce_sum(sparse), ragged.row_lengths()
    with tf.Session() as session:
        handle = session.partial_run_setup([total, rows], [sparse, ragged])
        given = tf.SparseTensorValue([[0, 1]], [3.0], [2, 2])
        assert session.partial_run(handle, total, {sparse: given}) == 3
        given = tf.ragged.constant_value([[1], [2, 3]], np.int32)
        assert session.partial_run(handle, rows, {ragged: given}).tolist() == [1, 2]


def test_parts_share_a_queue_and_a_table():
    queue = tf.FIFOQueue(5, tf.int32, [[]])
    p = tf.placeholder(tf.string, [])
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=0
    )
    first, second = queue.dequeue() + table.lookup(p), queue.dequeue() * table.lookup(p + "")
    with tf.Session() as session:
        session.run([queue.enqueue_many([[10, 20, 30]]), tf.tables_initializer()])
        handle = session.partial_run_setup([first, second], [p])
        assert session.partial_run(handle, first, {p: "a"}) == 11
        assert session.partial_run(handle, second) == 20
        assert session.run(queue.size()) == 1
