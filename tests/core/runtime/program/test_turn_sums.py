"""What loops only add up: sums of many turns at once give what each turn would have added."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.program.turns import ManyTurns

ROWS, WIDTH, TURNS = 32, 40, 90
RNG = np.random.RandomState(5)
X = RNG.randn(TURNS, ROWS, WIDTH).astype(np.float32)
WEIGHTS = RNG.uniform(-0.2, 0.2, (WIDTH, WIDTH)).astype(np.float32)
START = RNG.randn(ROWS, WIDTH).astype(np.float32)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    with tf.Graph().as_default():
        yield


@pytest.fixture
def loops(monkeypatch):
    """Of each loop whose turns are made at once its sums, rows that go apart, and turns made."""
    found = {}
    init, make = ManyTurns.__init__, ManyTurns.make

    def noted(self, whole, *others):
        sums = () if whole.sums is None else whole.sums.variables
        found[self] = [len(sums), whole.turns.apart, 0]
        init(self, whole, *others)

    def counted(self, *args):
        values, count = make(self, *args)
        found[self][2] += count
        return values, count

    monkeypatch.setattr(ManyTurns, "__init__", noted)
    monkeypatch.setattr(ManyTurns, "make", counted)
    return found


def _fed(value):
    array = np.asarray(value)
    return tf.placeholder_with_default(array, array.shape)


def _run(fetches, threads=2, feeds=None):
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    with tf.Session(config=config) as session:
        return session.run(fetches, feeds)


def _same(monkeypatch, fetches, feeds=None, threads=2):
    """Asserts that results are those of turns that are made op by op."""
    together = _run(fetches, threads, feeds)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    for a, b in zip(together, _run(fetches, threads, feeds), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def _recurrent(shape=(TURNS, ROWS, WIDTH)):
    """A recurrent network's gradients, by its weights and inputs."""
    x = tf.placeholder_with_default(X, shape)
    kernel, bias = _fed(WEIGHTS), _fed(WEIGHTS[0])
    y = tf.scan(
        lambda h, v: tf.tanh(v + tf.nn.bias_add(tf.matmul(h, kernel), bias)), x, _fed(START)
    )
    return tf.gradients(tf.sin(y), [kernel, bias, x])


@pytest.mark.parametrize("shape", [(TURNS, ROWS, WIDTH), (None, None, WIDTH)])
def test_gradients_of_weights_are_added_up_after_many_turns(shape, loops, monkeypatch):
    _same(monkeypatch, _recurrent(shape))
    backward = [found for found in loops.values() if found[0]]
    assert [found[:2] for found in backward] == [[2, ROWS]]
    assert backward[0][2] >= 20


def test_any_number_of_threads_gives_the_same_bits(loops):
    fetches = _recurrent()
    first, *others = (_run(fetches, threads) for threads in (1, 2, 3))
    assert any(found[0] and found[2] for found in loops.values())
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_weights_that_a_turn_takes_twice_get_both_gradients(loops, monkeypatch):
    kernel = _fed(WEIGHTS)
    h = _fed(START)
    _, y = tf.while_loop(
        lambda i, _: i < TURNS,
        lambda i, h: (i + 1, tf.tanh(h + tf.matmul(tf.tanh(tf.matmul(h, kernel)), kernel))),
        [0, h],
    )
    _same(monkeypatch, tf.gradients(y, [kernel, h]))
    assert [1, ROWS] in [found[:2] for found in loops.values()]


def test_gradients_of_elements_that_are_read_twice_are_added(loops, monkeypatch):
    x, kernel = _fed(X), _fed(WEIGHTS)
    rows = tf.TensorArray(tf.float32, TURNS, clear_after_read=False).unstack(x)
    _, y = tf.while_loop(
        lambda i, _: i < TURNS,
        lambda i, h: (i + 1, tf.tanh(tf.matmul(h, kernel) + rows.read(i // 3))),
        [0, _fed(START)],
    )
    _same(monkeypatch, tf.gradients(y, [x, kernel]))
    assert [1, ROWS] in [found[:2] for found in loops.values()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_a_loop_that_is_no_gradient(dtype, loops, monkeypatch):
    kernel = _fed(WEIGHTS.astype(dtype))

    def body(i, h, total, columns, square, product):
        after = tf.tanh(tf.matmul(h, kernel))
        return (
            i + 1, after, total + tf.reduce_sum(after), tf.reduce_sum(h * after, 0) + columns,
            tf.identity(square + tf.nn.l2_loss(after - h)),
            tf.add_n([tf.matmul(after, h, transpose_a=True), product]),
        )  # fmt: skip

    shape = (WIDTH, WIDTH)
    start = [
        0, _fed(START.astype(dtype)), _fed(dtype(3)), _fed(np.ones(WIDTH, dtype)),
        tf.zeros((), dtype), _fed(np.ones(shape, dtype)),
    ]  # fmt: skip
    _same(monkeypatch, tf.while_loop(lambda i, *_: i < TURNS, body, start)[1:])
    ((sums, rows, made),) = loops.values()
    assert (sums, rows) == (4, ROWS) and made >= 20


def _adding(name):
    """Loops of one sum that a turn has to know, or that is none."""
    kernel = _fed(WEIGHTS)

    def turn(i, h, total):
        after = tf.tanh(tf.matmul(h, kernel))
        added = tf.reduce_sum(after, 0)
        return {
            "is read": lambda: (i + 1, after + 0.01 * total, total + added),
            "is read first": lambda: (i + 1, after, tf.tanh(total) + added),
            "is there twice": lambda: (i + 1, after, total + total * 0.5 + added),
            "is a mean": lambda: (i + 1, after, total + tf.reduce_mean(after, 0)),
            "is a largest": lambda: (i + 1, after, tf.maximum(total, added)),
            "has a part that is read": lambda: (i + 1, after + 0.01 * added, total + added),
            "of a row": lambda: (i + 1, after, total + after[0]),
            "decides": lambda: (i + 1, after, total + added),
        }[name]()

    def more(i, h, total):
        return (i < TURNS) & ((total[0] < 1e9) if name == "decides" else True)

    return tf.while_loop(more, turn, [0, _fed(START), _fed(np.zeros(WIDTH, np.float32))])[1:]


@pytest.mark.parametrize(
    "name",
    [
        "is read", "is read first", "is there twice", "is a mean", "is a largest",
        "has a part that is read", "of a row", "decides",
    ],
)  # fmt: skip
def test_a_sum_that_a_turn_has_to_know_is_added_up_in_each(name, loops, monkeypatch):
    _same(monkeypatch, _adding(name))
    assert all(found[0] == 0 for found in loops.values())


def test_a_sum_of_another_type_than_the_program_says_is_added_up_turn_by_turn(loops, monkeypatch):
    """A variable may begin with a shape that only set_shape says."""
    start = tf.placeholder_with_default(np.zeros((), np.float32), None)
    told = tf.identity(start)
    told.set_shape((WIDTH,))
    kernel = _fed(WEIGHTS)
    _, _, total = tf.while_loop(
        lambda i, *_: i < TURNS,
        lambda i, h, total: (
            i + 1, tf.tanh(tf.matmul(tf.tanh(tf.matmul(h, kernel)), kernel)),
            total + tf.reduce_sum(h, 0),
        ),
        [0, _fed(START), told],
    )  # fmt: skip
    fine = {start: np.ones(WIDTH, np.float32)}
    _same(monkeypatch, [total], fine)
    assert [found[0] for found in loops.values()] == [1]
    monkeypatch.delenv("OPDOCK_DISABLE_PASSES")
    _same(monkeypatch, [total])


def test_explain_says_so():
    fetches = _recurrent()
    with tf.Session() as session:
        session.run(fetches)
        told = [word for row in session.explain(fetches).rows for word in row.means]
    assert "what its turns only add up is added up after many of them" in told


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "SimpleRNN"])
def test_layers_that_read_their_weights_in_each_turn(layer, loops, monkeypatch):
    """Keras's cells read variables, and cut pieces out of them, in the loop."""
    x = tf.placeholder_with_default(X[:30].transpose(1, 0, 2), (None, 30, WIDTH))
    y = getattr(tf.keras.layers, layer)(WIDTH, return_sequences=True)(x)
    variables = tf.trainable_variables()
    grads = tf.gradients(tf.sin(y), variables)
    values = [0.2 * RNG.randn(*v.shape.as_list()) for v in variables]

    def run():
        with tf.Session() as session:
            for v, value in zip(variables, values, strict=True):
                v.load(value, session)
            return [session.run([y, *grads]) for _ in range(3)][-1]

    together = run()
    forward, backward = (found for found in loops.values())
    assert backward[0] == len(variables)
    assert forward[1] == backward[1] == ROWS
    assert min(forward[2], backward[2]) >= 20
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    for a, b in zip(together, run(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def test_a_variable_without_a_value_is_told_by_the_op():
    v = tf.get_variable("mine", initializer=WEIGHTS, use_resource=True)
    _, h = tf.while_loop(
        lambda i, _: i < TURNS, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, v))), [0, _fed(START)]
    )
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.FailedPreconditionError, match="reading resource variable mine"),
    ):
        session.run(h)


def test_a_variable_is_read_anew_in_each_step(loops):
    v = tf.get_variable("mine", initializer=WEIGHTS, use_resource=True)
    _, h = tf.while_loop(
        lambda i, _: i < TURNS, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, v))), [0, _fed(START)]
    )
    with tf.Session() as session:
        session.run(v.initializer)
        one = [session.run(h) for _ in range(3)][-1]
        session.run(v.assign(8.0 * v))
        other = session.run(h)
        np.testing.assert_array_equal(session.run(h), other)
        session.run(v.assign(v / 8.0))
        np.testing.assert_array_equal(session.run(h), one)
    assert any(found[2] for found in loops.values())
    assert np.abs(one - other).max() > 1e-3
