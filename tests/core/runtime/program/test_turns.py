"""Loops whose turns are made in generated code: the same bits, errors and ends as op by op."""

from __future__ import annotations

import re

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.program.turns import ManyTurns

N = 700
X = np.random.RandomState(3).uniform(0.5, 1.5, (N, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    with tf.Graph().as_default():
        yield


@pytest.fixture
def made(monkeypatch):
    """How many turns were made at once, call by call."""
    counts = []
    make = ManyTurns.make

    def counted(self, *args):
        values, count = make(self, *args)
        counts.append(count)
        return values, count

    monkeypatch.setattr(ManyTurns, "make", counted)
    return counts


def _both(monkeypatch, fetches, feeds=None):
    """What is fetched, with many turns in a call and turn by turn."""
    with tf.Session() as session:
        one = session.run(fetches, feeds)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    with tf.Session() as session:
        return one, session.run(fetches, feeds)


def _fed(value):
    array = np.asarray(value)
    return tf.placeholder_with_default(array, array.shape)


def _numbers():
    return tf.while_loop(
        lambda i, *_: i < N,
        lambda i, a, b: (i + 1, b, a * 0.5 + b * 0.49),
        [0, _fed(np.float32(1)), 2.0],
    )


def _vectors():
    def body(i, a, b, flags):
        return i + 1, b, a * tf.cast(i, tf.float64) + 0.5, tf.logical_not(flags)

    start = [
        _fed(np.int64(0)),
        _fed(X[0].astype(np.float64)),
        _fed(np.ones(3)),
        _fed([True, False]),
    ]
    return tf.while_loop(lambda i, *_: i < 90, body, start)


def _shapes_apart():
    return tf.map_fn(
        lambda xy: (xy[0] * 2 + 1, tf.cast(xy[1], tf.int64) - 3),
        (_fed(X), _fed(np.arange(N * 8, dtype=np.int32).reshape(N, 2, 4))),
        (tf.float32, tf.int64),
    )


def _map_gradient():
    x = _fed(X)
    y = tf.map_fn(lambda v: v * v * v + 1 / v, x)
    return [y, tf.gradients(y, x)[0]]


def _scan_gradient():
    x, start = _fed(X), _fed(X[1])
    y = tf.scan(lambda a, v: tf.abs(a - v) * 0.9 + tf.sqrt(v), x, start)
    return [y, *tf.gradients(y * y, [x, start])]


def _second_derivative():
    x = _fed(X[:, 0])
    y = tf.foldl(lambda a, v: a * 0.99 + v * v * v, x)
    first = tf.gradients(y, x)[0]
    return [y, first, tf.gradients(first, x)[0]]


def _same_place(index=lambda i: tf.minimum(i, 1)):
    """An element that many turns read: its gradients are added up, in order."""
    x = _fed(X[:2])
    array = tf.TensorArray(tf.float32, 2, clear_after_read=False).unstack(x)
    _, y = tf.while_loop(
        lambda i, _: i < N, lambda i, y: (i + 1, y * 0.9 + array.read(index(i))), [0, tf.zeros(3)]
    )
    return [y, tf.gradients(y * y, x)[0], array.stack()]


def _gradient_alone():
    """A remainder may fail, so the forward loop goes turn by turn."""
    return _same_place(lambda i: i % 2)


def _backwards():
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(3,))
    _, array = tf.while_loop(
        lambda i, _: i >= 0, lambda i, a: (i - 1, a.write(i, tf.cast([i, i + 1, 0], tf.float32))),
        [N, array],
    )  # fmt: skip
    return array.stack()


PROGRAMS = [
    _numbers, _vectors, _shapes_apart, _map_gradient, _scan_gradient, _second_derivative,
    _same_place, _gradient_alone,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_have_the_same_bits(program, monkeypatch, made):
    one, other = _both(monkeypatch, program())
    assert max(made) >= 20, "no turns were made at once"
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def _cell(units, batch, make):
    x = _fed(np.random.RandomState(5).randn(90, batch, units).astype(np.float32))
    cell = make(units, kernel_initializer=tf.constant_initializer(0.1))
    y, _ = tf.nn.dynamic_rnn(cell, x, time_major=True, dtype=tf.float32)
    return [y, *tf.gradients(tf.reduce_sum(y * y), [x, *tf.trainable_variables()])]


def _folds():
    """Folds of each kind along each axis, longer than a block, and what is folded of folds."""

    def body(i, total, rows, most):
        x = tf.cast(i, tf.float32) * 0.01 + table
        means = tf.reduce_mean(x, 1, keepdims=True)
        spread = tf.reduce_sum(tf.square(x - means), 0) / 3
        return (
            i + 1,
            total * 0.5 + tf.reduce_max(spread) + tf.reduce_min(rows),
            means[:, 0] + tf.reduce_prod(x[:, 3:9], 1) * 1e-3,
            tf.maximum(most, spread[5:8]),
        )

    table = _fed(np.random.RandomState(7).uniform(0.5, 1.0, (4, 1500)).astype(np.float32))
    start = [0, _fed(np.float32(0)), _fed(np.ones(4, np.float32)), _fed(np.zeros(3, np.float32))]
    return tf.while_loop(lambda i, *_: i < 90, body, start)


def _moved():
    """Variables that change places while both are read, and views of every kind."""

    def body(i, a, b, c):
        left, right = tf.split(b, 2, 1)
        top, _, low = tf.unstack(a)
        both = tf.concat([right, -left, b[:, 1:3]], 1)
        return (
            i + 1,
            tf.transpose(c) * 0.9,
            tf.stack([low, top, tf.reshape(c, [12])[2:6]])[:, ::-1] * 0.5 + both[:, 2:],
            tf.matmul(a, b, transpose_a=True)[:, :3] * 0.1 + tf.slice(c, [0, 0], [4, 3]),
        )

    rng = np.random.RandomState(8)
    shapes = [(3, 4), (3, 4), (4, 3)]
    start = [_fed(rng.randn(*s).astype(np.float32)) for s in shapes]
    return tf.while_loop(lambda i, *_: i < 90, body, [0, *start])


def _odd_products():
    """Tiles of each height and width, and matrices transposed in every way."""

    def body(i, a, b):
        c = tf.matmul(a, b)
        d = tf.matmul(b, c, transpose_a=True, transpose_b=True)
        return i + 1, tf.tanh(tf.matmul(tf.matmul(c, d), a)), tf.tanh(tf.matmul(d, a) * 0.1 + b)

    rng = np.random.RandomState(9)
    return tf.while_loop(
        lambda i, *_: i < 90, body, [0, _fed(rng.randn(7, 23)), _fed(rng.randn(23, 23))]
    )


def _rolled(a):
    return [*tf.foldl(lambda s, v: (s[0] + tf.reduce_sum(v) * v, s[0]), a, (a[0], a[0]))]


CLOSE = {
    "lstm": lambda: _cell(8, 3, lambda n, kernel_initializer: tf.nn.rnn_cell.LSTMCell(
        n, initializer=kernel_initializer)),
    "gru": lambda: _cell(5, 1, tf.nn.rnn_cell.GRUCell),
    "folds": _folds,
    "moved": _moved,
    "products": _odd_products,
    "sums": lambda: _rolled(_fed(X[:90])),
}  # fmt: skip


@pytest.mark.parametrize("program", CLOSE)
def test_small_turns_give_what_single_ops_do(program, monkeypatch, made):
    """Sums are taken in another order."""
    fetches = CLOSE[program]()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one = session.run(fetches)
    assert max(made) >= 20, "no turns were made at once"
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        other = session.run(fetches)
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_what_is_in_the_way_is_done_op_by_op(monkeypatch, made):
    """An array grows at its first write; all others fit."""
    one, other = _both(monkeypatch, _backwards())
    np.testing.assert_array_equal(one, other)


def test_feeds_and_results_are_left_alone(made):
    x, start = X.copy(), X[0].copy()
    fed, first = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, [3])
    y = tf.scan(lambda a, v: a * 0.5 + v, fed, first)
    with tf.Session() as session:
        one = session.run(y, {fed: x, first: start})
        kept = one.copy()
        two = session.run(y, {fed: x * 2, first: start})
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(start, X[0])
    np.testing.assert_array_equal(one, kept)
    assert (two != one).any()
    # A loop that turns a few times is not worth a compiler.
    assert made == [N - 64, N]


@pytest.mark.parametrize("most", [0, 1, 63, 400, 5000])
def test_a_limit_of_turns_holds(most):
    found = tf.while_loop(
        lambda *_: True, lambda i, x: (i + 1, x + 0.5), [0, _fed(0.0)], maximum_iterations=most
    )
    with tf.Session() as session:
        assert list(session.run(found)) == [most, most / 2]


@pytest.mark.parametrize("last", [299, 300, 301, 1000])
def test_an_index_beyond_the_end_is_told_by_the_op(last, monkeypatch):
    array = tf.TensorArray(tf.float32, 300).unstack(_fed(X[:300]))
    found = tf.while_loop(
        lambda i, _: i <= last, lambda i, y: (i + 1, y + array.read(i)), [0, tf.zeros(3)]
    )[1]
    if last == 299:
        one, other = _both(monkeypatch, [found])
        np.testing.assert_array_equal(one, other)
        return
    with tf.Session() as session, pytest.raises(
        tf.errors.InvalidArgumentError, match="Tried to read from index 300 but array size is: 300"
    ):  # fmt: skip
        session.run(found)


def test_a_second_read_of_what_is_cleared_is_told_by_the_op():
    array = tf.TensorArray(tf.float32, 300).unstack(_fed(X[:300]))
    found = tf.while_loop(
        lambda i, _: i < 400, lambda i, y: (i + 1, y + array.read(i % 250)), [0, tf.zeros(3)]
    )[1]
    with tf.Session() as session, pytest.raises(
        tf.errors.InvalidArgumentError, match="Could not read index 0 twice"
    ):  # fmt: skip
        session.run(found)


def test_a_second_write_is_told_by_the_op():
    array = tf.TensorArray(tf.float32, 300, element_shape=())
    found = tf.while_loop(
        lambda i, _: i < 400, lambda i, a: (i + 1, a.write(i % 250, tf.cast(i, tf.float32))),
        [0, array],
    )[1].stack()  # fmt: skip
    with tf.Session() as session, pytest.raises(
        tf.errors.InvalidArgumentError, match="index 0 because it has already been written to"
    ):  # fmt: skip
        session.run(found)


def test_places_that_were_not_written_read_as_zeros(monkeypatch):
    array = tf.TensorArray(tf.float32, N, element_shape=(3,)).scatter(
        np.arange(0, N, 7), _fed(X[: N // 7])
    )
    fetches = [tf.scan(lambda a, i: a + array.read(i), np.arange(N, dtype=np.int32), tf.zeros(3))]
    np.testing.assert_array_equal(*_both(monkeypatch, fetches))


def test_time_limits_are_heard(made):
    found = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, [_fed(0)])
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(found, options=tf.RunOptions(timeout_in_ms=200))


def test_a_traced_step_has_each_turn(made):
    x = _fed(X[:20])
    y = tf.map_fn(lambda v: v * 2, x)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(y, options=tf.RunOptions(trace_level=3), run_metadata=metadata)
    names = [s.node_name for d in metadata.step_stats.dev_stats for s in d.node_stats]
    assert sum("mul" in name for name in names) == 20
    assert not made


def _told(fetches):
    with tf.Session() as session:
        rows = session.explain(fetches).rows
    return [row.means for row in rows if row.op.endswith("While")]


def _large_product(v):
    rows = _fed(np.ones((100, 120), np.float32)) * v[0]
    return tf.reduce_sum(tf.matmul(rows, rows, transpose_b=True))


def test_explain_says_how_turns_are_made():
    assert _told(tf.map_fn(lambda v: v * 2, _fed(X))) == [("generated code, many turns a call",)]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (lambda v: tf.cumsum(v), "Cumsum .* is not compiled in loops"),
        (lambda v: tf.random_uniform([3]) * v, "RandomUniform .* is not compiled in loops"),
        (lambda v: tf.nn.top_k(v, 3)[0], "TopKV2 .* is not compiled in loops"),
        (lambda v: v + _large_product(v), ".* its products are large"),
    ],
)
def test_explain_says_why_they_are_not(body, why):
    start = [0, _fed(X[0])]
    (told,) = _told(tf.while_loop(lambda i, *_: i < 3, lambda i, v: (i + 1, body(v)), start)[1])
    assert re.match(f"turn by turn: {why}", told[0])


def test_halves_are_rounded_by_each_op(monkeypatch):
    fetches = tf.while_loop(
        lambda i, _: i < 50,
        lambda i, x: (i + 1, x * 1.01 + 0.3),
        [0, _fed(X[0].astype(np.float16))],
    )
    one, other = _both(monkeypatch, fetches)
    np.testing.assert_array_equal(one[1], other[1])
