"""Loops whose rows go their ways apart: shares of them, whoever computes them, give the same."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.program.turns import ManyTurns

ROWS, WIDTH, INPUTS, TURNS = 24, 30, 40, 90
RNG = np.random.RandomState(4)
X = RNG.randn(TURNS, ROWS, INPUTS).astype(np.float32)
WEIGHTS = RNG.uniform(-0.2, 0.2, (INPUTS + WIDTH, 3 * WIDTH)).astype(np.float32)
BIAS = RNG.randn(3 * WIDTH).astype(np.float32)


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


@pytest.fixture
def apart(monkeypatch):
    """The rows of each loop that is compiled whole."""
    found = []
    init = ManyTurns.__init__

    def noted(self, whole, *others):
        found.append(whole.turns.apart)
        init(self, whole, *others)

    monkeypatch.setattr(ManyTurns, "__init__", noted)
    return found


def _fed(value):
    array = np.asarray(value)
    return tf.placeholder_with_default(array, array.shape)


def _cell(x, h, kernel, bias):
    """Of a product that is laid out in panels, and columns that are left."""
    z = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias)
    gate, new, out = tf.split(z, 3, 1)
    return tf.sigmoid(gate) * h + tf.tanh(new) * tf.sigmoid(out + 1.0)


def _picked():
    """Inputs are rows of a tensor; what is left of each turn is kept, a number counts."""
    x, kernel, bias = _fed(X), _fed(WEIGHTS), _fed(BIAS)

    def body(i, total, h, kept):
        h = _cell(tf.gather(x, i), h, kernel, bias)
        return i + 1, total + 0.5 * tf.cast(i, tf.float32), h, kept.write(i, h[:, ::-1])

    kept = tf.TensorArray(tf.float32, TURNS, element_shape=(ROWS, WIDTH))
    start = [0, _fed(np.float32(0)), _fed(np.zeros((ROWS, WIDTH), np.float32)), kept]
    _, total, h, kept = tf.while_loop(lambda i, *_: i < TURNS, body, start)
    return [total, h, kept.stack()]


def _read():
    """Inputs are elements of an array, and gradients go back."""
    x, kernel, bias = _fed(X), _fed(WEIGHTS), _fed(BIAS)
    y = tf.scan(lambda h, v: _cell(v, h, kernel, bias), x, tf.zeros((ROWS, WIDTH)))
    return [y, *tf.gradients(y * y, [x, kernel, bias])]


def _run(fetches, threads):
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    with tf.Session(config=config) as session:
        return session.run(fetches)


@pytest.mark.parametrize("program", [_picked, _read])
def test_shares_of_rows_give_what_single_ops_do(program, monkeypatch, made, apart):
    fetches = program()
    one = _run(fetches, 2)
    assert max(made) >= 20, "no turns were made at once"
    assert ROWS in apart
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    for a, b in zip(one, _run(fetches, 2), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("program", [_picked, _read])
def test_any_number_of_threads_gives_the_same_bits(program, made):
    fetches = program()
    first, *others = (_run(fetches, threads) for threads in (1, 2, 3))
    assert max(made) >= 20, "no turns were made at once"
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_row_that_is_not_there_is_told_by_the_op():
    x, kernel, bias = _fed(X), _fed(WEIGHTS), _fed(BIAS)
    _, h = tf.while_loop(
        lambda i, _: i <= TURNS,
        lambda i, h: (i + 1, _cell(tf.gather(x, i, name="mine"), h, kernel, bias)),
        [0, tf.zeros((ROWS, WIDTH))],
    )
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=rf"{TURNS} is not in \[0, {TURNS}\)"),
    ):
        session.run(h)


@pytest.mark.parametrize(
    ("read", "lies"),
    [
        (lambda x, i: x[i], True),
        (lambda x, i: x[i, :], True),
        (lambda x, i: x[i, :, 1:], False),
        (lambda x, i: x[:, i], False),
    ],
    ids=["row", "whole row", "part", "column"],
)
def test_a_subscript_is_what_it_says(read, lies, made):
    """A row is read where it lies; what else there may be is done op by op."""
    x = _fed(X[:ROWS, :, :ROWS])
    start = read(x, 0) * 0.0
    _, h = tf.while_loop(
        lambda i, _: i < ROWS, lambda i, h: (i + 1, 0.5 * h + read(x, i)), [0, start]
    )
    expected = np.zeros(start.shape, np.float32)
    for i in range(ROWS):
        expected = np.float32(0.5) * expected + read(X[:ROWS, :, :ROWS], i)
    with tf.Session() as session:
        for _ in range(4):  # which are turns enough for code
            np.testing.assert_allclose(session.run(h), expected, rtol=1e-5, atol=1e-5)
        rows = session.explain(h).rows
    (told,) = [row.means for row in rows if row.op.endswith("While")]
    assert told[0].startswith("generated code") is lies
    assert any(made) is lies


def test_a_row_counted_from_the_end_is_read(made):
    x = _fed(X[:, 0])
    _, h = tf.while_loop(
        lambda i, _: i >= -TURNS, lambda i, h: (i - 1, 0.5 * h + x[i]), [-1, tf.zeros(INPUTS)]
    )
    expected = np.zeros(INPUTS, np.float32)
    for row in X[::-1, 0]:
        expected = np.float32(0.5) * expected + row
    np.testing.assert_allclose(_run(h, 2), expected, rtol=1e-5, atol=1e-5)


def test_two_rows_of_one_tensor_are_two_readings(made):
    x = _fed(X[:, :, :WIDTH])
    _, h = tf.while_loop(
        lambda i, _: i < TURNS - 1,
        lambda i, h: (i + 1, 0.5 * h + tf.gather(x, i) * tf.gather(x, i + 1)),
        [0, tf.zeros((ROWS, WIDTH))],
    )
    expected = np.zeros((ROWS, WIDTH), np.float32)
    for a, b in zip(X[:-1, :, :WIDTH], X[1:, :, :WIDTH], strict=True):
        expected = np.float32(0.5) * expected + a * b
    np.testing.assert_allclose(_run(h, 2), expected, rtol=1e-5, atol=1e-5)
    assert max(made) >= 20


def test_a_step_finds_the_weights_of_its_own(made):
    """What is laid out of a matrix lasts as long as a run of the loop."""
    kernel = tf.placeholder(tf.float32, WEIGHTS.shape)
    x, bias = _fed(X), _fed(BIAS)
    doubled = kernel * 2.0  # in memory that the next step writes again
    _, h = tf.while_loop(
        lambda i, _: i < TURNS,
        lambda i, h: (i + 1, _cell(tf.gather(x, i), h, doubled, bias)),
        [0, tf.zeros((ROWS, WIDTH))],
    )
    with tf.Session() as session:
        one = session.run(h, {kernel: WEIGHTS})
        other = session.run(h, {kernel: -WEIGHTS})
        again = session.run(h, {kernel: WEIGHTS})
    assert max(made) >= 20
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1


def _square(name, rows=ROWS):
    return {
        "each by itself": lambda h: tf.tanh(h + h[:, ::-1]),
        "of all rows": lambda h: tf.tanh(h + h[:1]),
        "of another row": lambda h: tf.tanh(h[::-1]),
        "transposed": lambda h: tf.tanh(tf.transpose(h)),
        "folded": lambda h: h - tf.reduce_mean(h, 0),
        "folded by row": lambda h: h - tf.reduce_mean(h, 1, keepdims=True),
        "of its parts": lambda h: tf.nn.softmax(tf.nn.leaky_relu(4 * h)),
        "a product from the left": lambda h: tf.tanh(tf.matmul(_fed(np.eye(rows, dtype="f4")), h)),
        "a product with itself": lambda h: tf.tanh(tf.matmul(h, h)),
        "a product from the right": lambda h: tf.tanh(tf.matmul(h, _fed(np.eye(rows, dtype="f4")))),
        "a vector": lambda h: tf.tanh(h + tf.tanh(_fed(np.ones(rows, "f4")) + h[0, 0])),
    }[name]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("each by itself", ROWS), ("of all rows", 0), ("of another row", 0), ("transposed", 0),
        ("folded", 0), ("folded by row", ROWS), ("of its parts", ROWS),
        ("a product from the left", 0), ("a product with itself", 0),
        ("a product from the right", ROWS), ("a vector", 0),
    ],
)  # fmt: skip
def test_rows_that_take_something_of_others_stay_together(name, rows, monkeypatch, made, apart):
    start = _fed(RNG.randn(ROWS, ROWS).astype(np.float32))
    step = _square(name)
    _, h = tf.while_loop(lambda i, _: i < TURNS, lambda i, h: (i + 1, step(h)), [0, start])
    one = _run(h, 2)
    assert apart == [rows]
    assert max(made) >= 20
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    np.testing.assert_allclose(one, _run(h, 2), rtol=1e-4, atol=1e-4)


def test_attention_goes_row_by_row(monkeypatch, made, apart):
    """Softmaxes and weighted sums of what a row may look at, and gradients of it all."""
    memory, kernel = _fed(RNG.randn(ROWS, 7, WIDTH).astype("f4")), _fed(WEIGHTS[:WIDTH, :WIDTH])

    def body(i, h):
        scores = tf.reduce_sum(tf.tanh(memory + tf.expand_dims(tf.matmul(h, kernel), 1)), 2)
        seen = tf.reduce_sum(memory * tf.expand_dims(tf.nn.softmax(scores), 2), 1)
        return i + 1, tf.tanh(seen + tf.matmul(h, kernel))

    start = _fed(RNG.randn(ROWS, WIDTH).astype("f4"))
    _, h = tf.while_loop(lambda i, _: i < TURNS, body, [0, start])
    fetches = [h, *tf.gradients(h, [memory, kernel, start])]
    one = _run(fetches, 2)
    assert apart == [ROWS, ROWS] and min(made) >= 20
    for a, b in zip(one, _run(fetches, 1), strict=True):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "turns")
    for a, b in zip(one, _run(fetches, 2), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def test_explain_says_that_rows_are_shared(monkeypatch):
    fetches = _picked()
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2)) as session:
        session.run(fetches)
        rows = session.explain(fetches).rows
    (told,) = [row.means for row in rows if row.op.endswith("While")]
    assert told == ("generated code, many turns a call on up to 2 threads",)
