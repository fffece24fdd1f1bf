"""Recurrent networks from both ends, with loops of the caller's, and cells around cells."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

X = np.random.RandomState(0).randn(2, 4, 3).astype(np.float32)
LENGTHS = [4, 2]


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


class Sum(tf.nn.rnn_cell.RNNCell):
    """Adds its inputs up."""

    state_size = output_size = 3

    def call(self, inputs, state):
        return inputs + state, inputs + state


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_dynamic_from_both_ends(time_major, lengths):
    inputs = X.transpose(1, 0, 2) if time_major else X
    (ahead, back), (state_fw, state_bw) = run(
        tf.nn.bidirectional_dynamic_rnn(Sum(), Sum(), inputs, lengths, dtype=tf.float32,
                                        time_major=time_major)
    )  # fmt: skip
    if time_major:
        ahead, back = ahead.transpose(1, 0, 2), back.transpose(1, 0, 2)
    for row, length in enumerate(lengths or [4, 4]):
        part = X[row, :length]
        np.testing.assert_allclose(ahead[row, :length], part.cumsum(0), rtol=1e-5)
        np.testing.assert_allclose(back[row, :length], part[::-1].cumsum(0)[::-1], rtol=1e-5)
        assert not ahead[row, length:].any() and not back[row, length:].any()
        np.testing.assert_allclose(state_fw[row], part.sum(0), rtol=1e-5)
        np.testing.assert_allclose(state_bw[row], part.sum(0), rtol=1e-5)


def test_static_from_both_ends_and_variable_names():
    cells = [tf.nn.rnn_cell.BasicLSTMCell(2) for _ in range(2)]
    steps = [tf.constant(X[:, t]) for t in range(4)]
    outputs, *_ = tf.nn.static_bidirectional_rnn(*cells, steps, dtype=tf.float32)
    assert [o.shape.as_list() for o in outputs] == [[2, 4]] * 4
    names = [v.op.name for v in tf.global_variables()]
    assert names == [
        f"bidirectional_rnn/{way}/basic_lstm_cell/{part}"
        for way in ("fw", "bw")
        for part in ("kernel", "bias")
    ]
    sums, *_ = tf.nn.static_bidirectional_rnn(Sum(), Sum(), steps, dtype=tf.float32,
                                              sequence_length=LENGTHS, scope="sums")  # fmt: skip
    found = run(sums)
    want = np.concatenate([X[1, 0], X[1, :2].sum(0)])
    np.testing.assert_allclose(found[0][1], want, rtol=1e-5)


def raw(inputs, lengths):
    array = tf.TensorArray(tf.float32, 4).unstack(tf.transpose(inputs, [1, 0, 2]))

    def loop(time, output, state, loop_state):
        finished = time >= lengths
        following = tf.cond(
            tf.reduce_all(finished), lambda: tf.zeros([2, 3]), lambda: array.read(time)
        )
        state = tf.zeros([2, 3]) if output is None else state
        return finished, following, state, output, loop_state

    return tf.nn.raw_rnn(Sum(), loop)


def test_raw_rnn_is_dynamic_rnn_by_hand():
    lengths = tf.constant(LENGTHS)
    arrays, state, loop_state = raw(tf.constant(X), lengths)
    assert loop_state is None
    want, want_state = tf.nn.dynamic_rnn(Sum(), X, lengths, dtype=tf.float32)
    outputs = tf.transpose(arrays.stack(), [1, 0, 2])
    found = run([outputs, state, want, want_state])
    np.testing.assert_allclose(found[0], found[2], rtol=1e-6)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-6)


def test_a_state_that_is_kept():
    class Saver:
        def __init__(self):
            self.variable = tf.get_variable("kept", [2, 3], initializer=tf.zeros_initializer)

        def state(self, name):
            assert name == "sum"
            return self.variable.read_value()

        def save_state(self, name, value):
            return self.variable.assign(value)

    outputs, _ = tf.nn.static_state_saving_rnn(Sum(), [tf.ones([2, 3])] * 2, Saver(), "sum")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(outputs[-1]).max() == 2 and session.run(outputs[-1]).max() == 4
    with pytest.raises(ValueError, match="same type"):
        tf.nn.static_state_saving_rnn(Sum(), [tf.ones([2, 3])], Saver, ("sum",))


def test_wrappers():
    cell = tf.nn.rnn_cell.ResidualWrapper(Sum())
    state = cell.zero_state(2, tf.float32)
    output, _ = cell(tf.ones([2, 3]), state)
    assert run(output).tolist() == [[2, 2, 2]] * 2
    joined = tf.nn.rnn_cell.ResidualWrapper(Sum(), lambda given, made: made * 5)
    assert run(joined(tf.ones([2, 3]), state)[0]).max() == 5
    placed = tf.nn.rnn_cell.DeviceWrapper(Sum(), "/cpu:0")
    output, _ = placed(tf.ones([2, 3]), placed.zero_state(2, tf.float32))
    assert output.device == "/device:CPU:0" and cell.output_size == placed.state_size == 3


def test_what_is_no_cell():
    with pytest.raises(TypeError, match=r"'cell_bw' .*is not an RNNCell: .*'output_size'"):
        tf.nn.bidirectional_dynamic_rnn(Sum(), object(), X)
    with pytest.raises(TypeError, match="loop_fn must be a callable"):
        tf.nn.raw_rnn(Sum(), None)
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        tf.nn.static_bidirectional_rnn(Sum(), Sum(), tf.constant(X))


def test_what_a_state_has_behind_the_cells_own_is_left_alone():
    # As the first state of a decoder is that of an encoder in two directions.
    inside = {"state_is_tuple": False}
    cells = {
        "lstm": (tf.nn.rnn_cell.LSTMCell(3, use_peepholes=True, **inside), 6),
        "coupled": (tf.contrib.rnn.CoupledInputForgetGateLSTMCell(3, **inside), 6),
        "attention": (
            tf.contrib.rnn.AttentionCellWrapper(tf.nn.rnn_cell.GRUCell(3), 2, 4, 5, **inside), 15
        ),
        "layers": (
            tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(3) for _ in range(2)], **inside), 6
        ),
    }  # fmt: skip
    for name, (cell, size) in cells.items():
        state = np.random.RandomState(1).randn(2, size + 4).astype(np.float32)
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            longer = cell(tf.constant(X[:, 0]), tf.constant(state))
            fitting = cell(tf.constant(X[:, 0]), tf.constant(state[:, :size]))
        for one, other in zip(*run([longer, fitting]), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_state_in_one_tensor_has_two_halves_of_units():
    cell = tf.nn.rnn_cell.BasicLSTMCell(2, state_is_tuple=False)
    with pytest.raises(ValueError, match="Dimensions must be equal"):
        cell(tf.zeros([3, 4]), tf.zeros([3, 6]))
