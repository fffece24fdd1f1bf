"""`raw_rnn`: a loop that a function steers."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


class Adds(tf.nn.rnn_cell.RNNCell):
    output_size = state_size = 2

    def call(self, inputs, state):
        return inputs + state, inputs + state


def fed(x, lengths, emit=None, counts=False):
    steps = tf.TensorArray(tf.float32, x.shape[0]).unstack(x)

    def loop(time, output, state, counted):
        done = time >= lengths
        following = tf.cond(
            tf.reduce_all(done), lambda: tf.zeros(x.shape[1:]), lambda: steps.read(time)
        )
        if output is None:
            state, emitted, counted = tf.zeros(x.shape[1:]), emit, 0
        else:
            emitted = output if emit is None else tf.cast(output[:, :1], tf.int32)
        return (
            done,
            following,
            state,
            emitted,
            tf.constant(counted) if output is None and counts else counted + 1 if counts else None,
        )

    return loop


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


X = np.arange(12, dtype=np.float32).reshape(3, 2, 2)


def test_what_is_finished_emits_zeros_and_keeps_its_state():
    arrays, state, held = tf.nn.raw_rnn(Adds(), fed(X, [3, 2]))
    assert held is None
    outputs, end = run([arrays.stack(), state])
    wanted = X.cumsum(0)
    np.testing.assert_array_equal(end, [wanted[2, 0], wanted[1, 1]])
    wanted[2, 1] = 0
    np.testing.assert_array_equal(outputs, wanted)


def test_what_is_emitted_and_a_state_of_the_loop():
    emit = tf.zeros([1], tf.int32)
    arrays, _, held = tf.nn.raw_rnn(Adds(), fed(X, [3, 2], emit, counts=True))
    outputs, turns = run([arrays.stack(), held])
    assert outputs.dtype == np.int32 and outputs.shape == (3, 2, 1) and turns == 3


def test_arguments():
    with pytest.raises(TypeError, match="is not an RNNCell"):
        tf.nn.raw_rnn(object(), lambda *_: None)
    with pytest.raises(TypeError, match="must be a callable"):
        tf.nn.raw_rnn(Adds(), 3)
