"""Functions of each row: many at once where ops know how, else in a loop."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.vectorized_map import for_loop, pfor

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def _types() -> set[str]:
    return {op.type for op in tf.get_default_graph().get_operations()}


def test_rows_that_can_be_are_computed_at_once():
    found = tf.vectorized_map(lambda row: tf.exp(-row) * 2 + 1, tf.constant(X))
    assert "While" not in _types()
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(found), np.exp(-X) * 2 + 1, rtol=1e-6)


def test_rows_of_a_structure_in_a_loop():
    def norms(row):
        return {"sorted": tf.sort(row["x"]), "sum": tf.reduce_sum(row["x"] * row["y"])}

    found = tf.vectorized_map(norms, {"x": tf.constant(X), "y": tf.constant(-X)})
    with tf.Session() as sess:
        values = sess.run(found)
    np.testing.assert_allclose(values["sorted"], np.sort(X, axis=1))
    np.testing.assert_allclose(values["sum"], -(X * X).sum(axis=1))


def test_results_of_all_kinds_are_stacked():
    counter = tf.Variable(0)

    def body(i):
        sparse = tf.SparseTensor([[tf.cast(i, tf.int64), 0]], [tf.cast(i, tf.float32)], [4, 1])
        return i * i, None, sparse, tf.assign_add(counter, 1).op

    squares, nothing, sparse, counted = pfor(body, 4)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert nothing is None
        assert sess.run(squares).tolist() == [0, 1, 4, 9]
        dense = sess.run(tf.sparse.to_dense(sparse))
        np.testing.assert_array_equal(dense[:, :, 0], np.diag([0, 1, 2, 3]))
        sess.run(counter.initializer)
        sess.run(counted)
        assert sess.run(counter) == 4


def test_a_loop_gives_the_same():
    def body(i):
        return tf.gather(tf.constant(X), i) * 2, i

    looped, at_once = for_loop(body, [tf.float32, tf.int32], 4), pfor(body, 4)
    with tf.Session() as sess:
        for ours, theirs in zip(*sess.run([looped, list(at_once)]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert for_loop(body, [tf.float32, tf.int32], 0) is None


def test_gradients_go_through_rows():
    x = tf.constant(X)
    total = tf.reduce_sum(tf.vectorized_map(lambda row: row * row, x))
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(tf.gradients(total, x)[0]), 2 * X)


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="Use for_loop instead"):
        pfor(lambda i: i, 4, parallel_iterations=1)
    with pytest.raises(ValueError, match="positive integer"):
        pfor(lambda i: i, 4, parallel_iterations=0)
    with pytest.raises(ValueError, match="parallel_iterations currently unsupported"):
        pfor(lambda i, pfor_config: i, 4, parallel_iterations=2)
    with pytest.raises(ValueError, match="Number of expected outputs, 2"):
        for_loop(lambda i: i, [tf.int32, tf.int32], 4)


def test_a_tape_knows_what_rows_are_computed_from():
    x = tf.constant(X)
    tape = tf.GradientTape(persistent=True)
    tape.watch(x)

    def slope(i):
        with tape:
            row = tf.gather(x, i)
            loss = tf.reduce_sum(row**3)
        return tape.gradient(loss, row)

    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(pfor(slope, 4)), 3 * X**2)


def test_a_call_may_ask_for_what_all_calls_give():
    x = tf.constant(X)

    def centred(i, pfor_config):
        row = tf.gather(x, i)
        stacked = pfor_config.reduce_concat(row * 2.0)
        return row - pfor_config.reduce_mean(row), pfor_config.reduce_sum(row), stacked[0]

    with tf.Session() as sess:
        found, totals, firsts = sess.run(pfor(centred, len(X)))
        np.testing.assert_allclose(found, X - X.mean(axis=0), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(totals, np.tile(X.sum(axis=0), [len(X), 1]), rtol=1e-6)
        np.testing.assert_allclose(firsts, np.tile(2 * X[0], [len(X), 1]))


def test_each_call_differentiates_a_loop_of_its_own():
    x = tf.constant(X)

    def powers(i):
        row = tf.gather(x, i)
        _, found = tf.while_loop(lambda j, _: j < 2, lambda j, y: (j + 1, y * row), (0, row))
        return found, tf.gradients(found, row)[0]

    with tf.Session() as sess:
        for calls in (pfor(powers, 4), pfor(powers, 4, parallel_iterations=2)):
            found, slopes = sess.run(calls)
            np.testing.assert_allclose(found, X**3, rtol=1e-5)
            np.testing.assert_allclose(slopes, 3 * X**2, rtol=1e-5)
