"""Clusters whose sizes each step brings: what they compute, and what becomes of broadcasts."""

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import CLUSTER, OPEN_CLUSTER


@pytest.fixture(autouse=True)
def _compiled_at_once(monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def some(values, count):
    """Rows of which it is not known how many there are."""
    return tf.gather(values, tf.reshape(tf.where(tf.range(len(values)) < count), [-1]))


def plain_session():
    options = tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=-1))
    return tf.Session(config=tf.ConfigProto(graph_options=options))


def ops(session, fetches, feeds):
    """The op types of what runs."""
    return [row.op for row in session.explain(fetches, feeds).rows if row.how != "fused"]


def made(dtype="float32"):
    """Two results of rows, a column and a row of constants; how many rows is fed."""
    rng = np.random.default_rng(3)
    count = tf.placeholder(tf.int32, [])
    rows = some(rng.normal(size=(700, 5)).astype("float32"), count)
    column = some(rng.normal(size=(700, 1)).astype("float32"), count)
    rows, column = tf.cast(rows, dtype), tf.cast(column, dtype)
    scale = tf.constant(rng.normal(size=5), dtype)
    first = tf.nn.relu(rows * scale + column) - 0.5
    return count, [first, tf.tanh(first) * rows]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_whatever_sizes_come(dtype):
    count, fetches = made(dtype)
    with tf.Session() as session, plain_session() as plain:
        for n in (700, 0, 1, 3, 699):
            feeds = {count: n}
            assert OPEN_CLUSTER in ops(session, fetches, feeds)
            for got, want in zip(
                session.run(fetches, feeds), plain.run(fetches, feeds), strict=True
            ):  # fmt: skip
                assert got.dtype == want.dtype
                assert got.shape == (n, 5)
                near = 1e-6 if dtype in ("float32", "float64") else 1e-2
                np.testing.assert_allclose(
                    np.asarray(got, float), np.asarray(want, float), near, near
                )  # fmt: skip


def test_numpy_serves_until_there_is_code(monkeypatch):
    monkeypatch.delenv("OPDOCK_JIT")
    count, fetches = made()
    with tf.Session() as session, plain_session() as plain:
        found, wanted = (s.run(fetches, {count: 33}) for s in (session, plain))
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, 1e-6)


def test_a_result_that_reads_nothing_is_as_large_as_the_others():
    count = tf.placeholder(tf.int32, [])
    rows = some(np.ones((9, 5), "float32"), count)
    fetches = [tf.zeros_like(rows), tf.exp(rows) + 1.0]
    with tf.Session() as session:
        for n in (9, 2):
            zeros, _ = session.run(fetches, {count: n})
            np.testing.assert_array_equal(zeros, np.zeros((n, 5)))


def test_what_broadcasts_after_all_runs_op_by_op():
    few, many = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    values = np.arange(12, dtype="float32").reshape(4, 3)
    a, b = some(values, few), some(values, many)
    result = tf.nn.relu(a + b) * 2.0
    with tf.Session() as session:
        feeds = {few: 4, many: 4}
        assert OPEN_CLUSTER in ops(session, result, feeds)
        np.testing.assert_array_equal(session.run(result, feeds), values * 4)
        feeds = {few: 1, many: 4}
        np.testing.assert_array_equal(session.run(result, feeds), (values[:1] + values) * 2)
        assert OPEN_CLUSTER not in ops(session, result, feeds)
        np.testing.assert_array_equal(session.run(result, feeds), (values[:1] + values) * 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="add"):
            session.run(result, {few: 2, many: 3})


def test_one_thread_computes_what_several_do():
    count, fetches = made()
    config = tf.ConfigProto(intra_op_parallelism_threads=1)
    values = tf.random.uniform([1 << 20], seed=3)
    large = tf.gather(values, tf.reshape(tf.where(values > 0.1), [-1]))
    fetches = [*fetches, tf.tanh(large) + large * 2.0]
    with tf.Session() as several, tf.Session(config=config) as one:
        for a, b in zip(
            several.run(fetches, {count: 70}), one.run(fetches, {count: 70}), strict=True
        ):  # fmt: skip
            np.testing.assert_array_equal(a, b)


def test_sizes_that_are_known_stay_in_clusters_of_their_own():
    count = tf.placeholder(tf.int32, [])
    known = tf.constant(np.ones((40, 50), "float32")) * tf.random.uniform([40, 50])
    fetches = [tf.exp(known) + 1.0, tf.exp(some(np.ones((9, 5), "float32"), count)) + 1.0]
    with tf.Session() as session:
        found = ops(session, fetches, {count: 3})
    assert CLUSTER in found
    assert OPEN_CLUSTER in found
