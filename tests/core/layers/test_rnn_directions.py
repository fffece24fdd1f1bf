"""Both directions, saved states: against the same cell run one way."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

LENGTHS = [5, 2, 3]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        made.seed = 1
        yield made


def cell():
    return tf.nn.rnn_cell.BasicRNNCell(4)


def data():
    return np.random.RandomState(0).randn(3, 5, 2).astype(np.float32)


def by_hand(x, kernel, bias, lengths):
    """The outputs of a BasicRNNCell, zero past the end of each example."""
    out = np.zeros((*x.shape[:2], bias.size), np.float32)
    for row, length in enumerate(lengths):
        state = np.zeros(bias.size, np.float32)
        for t in range(length):
            state = np.tanh(np.concatenate([x[row, t], state]) @ kernel + bias)
            out[row, t] = state
    return out


def turned(x, lengths):
    out = x.copy()
    for row, length in enumerate(lengths):
        out[row, :length] = x[row, :length][::-1]
    return out


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("static", [False, True])
def test_both_directions(static, lengths):
    x = data()
    if static:
        steps = tf.unstack(tf.constant(x), axis=1)
        outputs, _, last = tf.nn.static_bidirectional_rnn(
            cell(), cell(), steps, dtype=tf.float32, sequence_length=lengths
        )
        outputs = tf.stack(outputs, axis=1)
    else:
        both, (_, last) = tf.nn.bidirectional_dynamic_rnn(
            cell(), cell(), tf.constant(x), lengths, dtype=tf.float32
        )
        outputs = tf.concat(both, 2)
    names = [v.name for v in tf.trainable_variables()]
    assert names == [
        f"bidirectional_rnn/{way}/basic_rnn_cell/{part}:0"
        for way in ("fw", "bw") for part in ("kernel", "bias")
    ]  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got, end, (kf, bf, kb, bb) = session.run([outputs, last, tf.trainable_variables()])
    n = lengths or [5] * 3
    back = by_hand(turned(x, n), kb, bb, n)
    np.testing.assert_allclose(got[..., :4], by_hand(x, kf, bf, n), 1e-5, 1e-6)
    np.testing.assert_allclose(got[..., 4:], turned(back, n), 1e-5, 1e-6)
    np.testing.assert_allclose(end, [back[i, n[i] - 1] for i in range(3)], 1e-5, 1e-6)


def test_arguments():
    x = tf.zeros([3, 5, 2])
    with pytest.raises(TypeError, match="'cell_fw' .* is not an RNNCell: 'output_size'"):
        tf.nn.bidirectional_dynamic_rnn(3, cell(), x, dtype=tf.float32)
    with pytest.raises(TypeError, match="must be a sequence"):
        tf.nn.static_bidirectional_rnn(cell(), cell(), x, dtype=tf.float32)
    with pytest.raises(ValueError, match="must not be empty"):
        tf.nn.static_bidirectional_rnn(cell(), cell(), [], dtype=tf.float32)


class Saver:
    """Keeps states in variables."""

    def __init__(self):
        self.kept = {}

    def state(self, name):
        self.kept[name] = tf.Variable(tf.zeros([3, 4]), trainable=False)
        return self.kept[name].initialized_value()

    def save_state(self, name, value):
        return self.kept[name].assign(value)


def test_a_state_that_is_saved():
    saver = Saver()
    steps = tf.unstack(tf.constant(data()), axis=1)
    outputs, state = tf.nn.static_state_saving_rnn(cell(), steps, saver, "h")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        last, end = session.run([outputs[-1], state])
        np.testing.assert_array_equal(session.run(saver.kept["h"]), end)
        np.testing.assert_array_equal(last, end)
    with pytest.raises(ValueError, match="same type as cell.state_size"):
        tf.nn.static_state_saving_rnn(cell(), steps, saver, ("h",))


def test_inputs_in_a_structure():
    class Adds(tf.nn.rnn_cell.RNNCell):
        output_size = state_size = 2

        def call(self, inputs, state):
            a, b = inputs
            return a + b + state, a + b + state

    x = data()
    outputs, _ = tf.nn.dynamic_rnn(Adds(), (tf.constant(x), tf.constant(2 * x)), dtype=tf.float32)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(outputs), 3 * x.cumsum(1), 1e-5, 1e-5)
