"""Recurrent cells and loops against NumPy, and a loop that learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

RNG = np.random.RandomState(2)
cells = tf.nn.rnn_cell


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return s.run(
            [fetches, {v.op.name.split("/", 1)[-1]: v for v in tf.global_variables()}], feed
        )


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def data(*shape: int) -> Any:
    return RNG.randn(*shape).astype(np.float32)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_lstm_with_everything() -> None:
    x, c, h = data(2, 3), data(2, 4), data(2, 5)
    cell = cells.LSTMCell(4, use_peepholes=True, cell_clip=0.5, num_proj=5, proj_clip=0.3)
    (out, state), w = run(cell(x, cells.LSTMStateTuple(c, h)))
    assert cell.state_size == (4, 5)
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ w["kernel"] + w["bias"], 4, 1)
    f, i = f + 1 + w["w_f_diag"] * c, i + w["w_i_diag"] * c
    new = np.clip(sigmoid(f) * c + sigmoid(i) * np.tanh(j), -0.5, 0.5)
    wanted = sigmoid(o + w["w_o_diag"] * new) * np.tanh(new) @ w["projection/kernel"]
    close(out, np.clip(wanted, -0.3, 0.3))
    close(state.c, new)
    close(state.h, out)


def test_gru_and_flat_lstm() -> None:
    x, h = data(2, 3), data(2, 4)
    (out, _), w = run(cells.GRUCell(4)(x, h))
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w["gates/kernel"] + 1), 2, 1)
    new = np.tanh(np.concatenate([x, r * h], 1) @ w["candidate/kernel"])
    close(out, u * h + (1 - u) * new)
    flat = cells.BasicLSTMCell(4, state_is_tuple=False)
    assert flat.state_size == 8
    assert flat(x, flat.zero_state(2, tf.float32))[1].shape.as_list() == [2, 8]


@pytest.mark.parametrize("time_major", [False, True])
def test_dynamic_and_static_agree(time_major: bool) -> None:
    x = data(2, 5, 3)
    cell = cells.MultiRNNCell([cells.BasicLSTMCell(4), cells.GRUCell(3)])
    given = tf.placeholder(tf.float32, [None, None, 3])
    lengths = [5, 2]
    a, final = tf.nn.dynamic_rnn(cell, given, lengths, dtype=tf.float32, time_major=time_major)
    b, last = tf.nn.static_rnn(
        cell, tf.unstack(tf.constant(x), axis=1), dtype=tf.float32, sequence_length=lengths
    )
    assert a.shape.as_list() == [None, None, 3]
    feed = {given: np.swapaxes(x, 0, 1) if time_major else x}
    (a, b, final, last), _ = run([a, tf.stack(b, 1), final, last], feed)
    close(np.swapaxes(a, 0, 1) if time_major else a, b)
    assert np.all(b[1, 2:] == 0)
    for one, other in zip(final[0], last[0]):
        close(one, other)
    close(final[1], last[1])


def test_the_loop_learns_and_regularizes() -> None:
    tf.set_random_seed(1)
    x = tf.constant(RNG.randint(0, 2, (64, 6, 1)).astype(np.float32))
    parity = tf.cast(tf.reduce_sum(x, [1, 2]) > 2.5, tf.int64)
    with tf.variable_scope("net", regularizer=tf.nn.l2_loss):
        _, state = tf.nn.dynamic_rnn(cells.BasicLSTMCell(8), x, dtype=tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(parity, tf.layers.dense(state.h, 2))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        losses = [s.run([loss, train])[0] for _ in range(40)]
        assert losses[-1] < 0.15 < losses[0]
        assert s.run(tf.losses.get_regularization_loss()) > 0


def test_dropout_wrapper() -> None:
    cell = cells.DropoutWrapper(cells.BasicLSTMCell(200), output_keep_prob=0.5, seed=3)
    out, state = cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
    (out, state), w = run([out, state])
    assert 60 < np.count_nonzero(out) < 140
    assert np.all(state.c != 0)
    assert sorted(w) == ["bias", "kernel"]


def test_own_cell() -> None:
    class Count(cells.RNNCell):
        state_size = output_size = 1

        def call(self, inputs: Any, state: Any) -> Any:
            w = tf.get_variable("w", [], initializer=tf.ones_initializer())
            new = state + w * tf.reduce_sum(inputs, 1, keepdims=True)
            return new, new

    outputs, _ = tf.nn.dynamic_rnn(Count(), tf.ones([1, 4, 2]), dtype=tf.float32)
    assert [v.op.name for v in tf.global_variables()] == ["rnn/count/w"]
    np.testing.assert_array_equal(run(outputs)[0].ravel(), [2, 4, 6, 8])


def test_errors() -> None:
    x = tf.ones([2, 3, 4])
    with pytest.raises(ValueError, match="you must give a dtype"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), x)
    with pytest.raises(ValueError, match="sequence_length must be a vector"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), x, [[1, 2]], dtype=tf.float32)
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        tf.nn.static_rnn(cells.GRUCell(2), x, dtype=tf.float32)
    with pytest.raises(ValueError, match="inputs must not be empty"):
        tf.nn.static_rnn(cells.GRUCell(2), [], dtype=tf.float32)
    with pytest.raises(ValueError, match="at least one cell"):
        cells.MultiRNNCell([])
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        cells.DropoutWrapper(cells.GRUCell(2), input_keep_prob=1.5)
    with pytest.raises(ValueError, match="variational_recurrent"):
        cells.DropoutWrapper(cells.GRUCell(2), variational_recurrent=True)
    with pytest.raises(ValueError, match="expected ndim=2, found ndim=3"):
        cells.GRUCell(2)(x, tf.ones([2, 2]))


def test_initial_state() -> None:
    cell, x = cells.GRUCell(5), tf.placeholder(tf.float64, [None, 3])
    state = cell.get_initial_state(x)
    assert state.dtype == tf.float64 and state.shape.as_list() == [None, 5]
    assert cell.get_initial_state(batch_size=2, dtype=tf.float32).shape.as_list() == [2, 5]
    with pytest.raises(ValueError, match="batch_size and dtype cannot be None"):
        cell.get_initial_state(batch_size=2)
    with pytest.raises(ValueError, match="batch size from input tensor is different from"):
        cell.get_initial_state(x, batch_size=2)
    with pytest.raises(ValueError, match="dtype from input tensor is different from"):
        cell.get_initial_state(x, dtype=tf.float32)
    with pytest.raises(ValueError, match="only supports floating point inputs, but saw dtype"):
        tf.nn.dynamic_rnn(cells.GRUCell(2), tf.zeros([2, 3, 1], tf.int32), dtype=tf.int32)


class Counter(cells.RNNCell):
    """Counts steps in a state without a batch, and keeps what it saw in an array."""

    output_size = 1
    state_size = (tf.TensorShape([]), ())

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None):
        return tf.constant(0), tf.TensorArray(dtype, size=0, dynamic_size=True)

    def call(self, inputs: Any, state: Any) -> Any:
        count, seen = state
        return inputs, (count + 1, seen.write(count, inputs))


def test_states_without_a_batch() -> None:
    x = data(2, 3, 1)
    out, (count, seen) = tf.nn.dynamic_rnn(Counter(), x, [1, 3], dtype=tf.float32)
    with tf.Session() as s:
        got, steps, kept = s.run([out, count, seen.stack()])
    assert steps == 3
    close(kept, x.swapaxes(0, 1))
    close(got[0, 1:], 0)
