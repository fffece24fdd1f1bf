"""Loops whose shapes are known when they run: code for the shapes that come."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.program import turns
from opdock.runtime.program.turns import ManyTurns

TURNS, INPUTS, UNITS = 30, 5, 7
RNG = np.random.RandomState(6)


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


def _steps(fetches, feeds, monkeypatch, made):
    """What each step gives: with many turns in a call, and op by op."""
    del made[:]
    found = []
    for off in ("", "turns"):
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", off)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found.append([session.run(fetches, feed) for feed in feeds])
    return zip(*found, strict=True)


def _close(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", ["LSTMCell", "BasicLSTMCell", "GRUCell", "BasicRNNCell"])
@pytest.mark.parametrize("measured", [False, True])
def test_a_batch_of_any_size(cell, measured, monkeypatch, made):
    tf.set_random_seed(2)
    x, lengths = tf.placeholder(tf.float32, [None, None, INPUTS]), tf.placeholder(tf.int32, [None])
    made_cell = getattr(tf.nn.rnn_cell, cell)(UNITS)
    y, _ = tf.nn.dynamic_rnn(
        made_cell, x, dtype=tf.float32, sequence_length=lengths if measured else None
    )
    weights = tf.trainable_variables()
    fetches = [y, *tf.gradients(y * y, [x, *weights])]
    feeds = [
        {x: RNG.randn(batch, TURNS, INPUTS), lengths: RNG.randint(0, TURNS + 1, batch)}
        for batch in (3, 3, 3, 17, 17, 3, 1, 16)
    ]
    for one, other in _steps(fetches, feeds, monkeypatch, made):
        _close(one, other)
    assert max(made) >= 20, "no turns were made at once"


def test_the_shapes_for_which_there_is_code_are_few(monkeypatch, made):
    monkeypatch.setattr(turns, "_MOST_SHAPES", 2)
    n = tf.placeholder(tf.int32, [])
    x = tf.cos(tf.reshape(tf.cast(tf.range(TURNS * n), tf.float32), [TURNS, n]))
    y = tf.scan(lambda a, v: a * 0.5 + v, x)
    feeds = [{n: size} for size in (4, 4, 4, 5, 6, 7, 4)]
    for one, other in _steps(y, feeds, monkeypatch, made):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    # The third step has turns enough; those of 6 and 7 have no code, the last one has again.
    assert len([count for count in made if count]) == 3


def test_a_variable_that_grows_is_computed_op_by_op(monkeypatch, made):
    x = tf.placeholder(tf.float32, [None])
    _, y = tf.while_loop(
        lambda i, _: i < 3 * TURNS,
        lambda i, v: (i + 1, tf.concat([v, v[:1] + 1.0], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    ((one, other),) = _steps(y, [{x: [1.0, 2.0]}], monkeypatch, made)
    np.testing.assert_array_equal(one, other)
    assert one.shape == (3 * TURNS + 2,)
    assert not any(made)


def test_what_does_not_fit_is_told_by_the_op(made):
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    _, total = tf.while_loop(
        lambda i, _: i < 3 * TURNS,
        lambda i, v: (i + 1, v * 0.5 + y),
        [0, x],
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Incompat"):
        session.run(total, {x: np.ones(3), y: np.ones(2)})


def test_explain_says_what_it_waits_for():
    x = tf.placeholder(tf.float32, [TURNS, None])
    y = tf.scan(lambda a, v: a * 0.5 + v, x)
    with tf.Session() as session:
        rows = session.explain(y).rows
    (told,) = [row.means for row in rows if row.op.endswith("While")]
    assert told[0].startswith("turn by turn until its shapes are known: the shape of ")
