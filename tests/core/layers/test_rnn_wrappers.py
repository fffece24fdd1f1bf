"""Cells around cells."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

cells = tf.nn.rnn_cell


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        made.seed = 1
        yield made


class Same(cells.RNNCell):
    """Its output and its state are its input."""

    output_size = state_size = 64

    def call(self, inputs, state):
        return inputs, inputs


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_all_steps_drop_alike():
    wrapped = cells.DropoutWrapper(
        Same(), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32, seed=3
    )
    outputs, _ = run(tf.nn.dynamic_rnn(wrapped, tf.ones([2, 4, 64]), dtype=tf.float32))
    assert set(np.unique(outputs)) == {0, 2}
    assert (outputs == outputs[:1, :1]).all()
    plain = cells.DropoutWrapper(Same(), output_keep_prob=0.5, seed=3)
    outputs, _ = run(tf.nn.dynamic_rnn(plain, tf.ones([2, 4, 64]), dtype=tf.float32, scope="b"))
    assert not (outputs == outputs[:1, :1]).all()


def test_what_alike_needs():
    with pytest.raises(ValueError, match="dtype must be provided"):
        cells.DropoutWrapper(Same(), variational_recurrent=True)
    with pytest.raises(ValueError, match="input_size must be provided"):
        cells.DropoutWrapper(Same(), 0.5, variational_recurrent=True, dtype=tf.float32)
    with pytest.raises(ValueError, match="input_keep_prob must be between 0 and 1"):
        cells.DropoutWrapper(Same(), 1.5)
    with pytest.raises(TypeError, match="must be callable"):
        cells.DropoutWrapper(Same(), dropout_state_filter_visitor=3)


def test_the_memory_of_an_lstm_is_kept():
    inner = cells.LSTMCell(64, initializer=tf.ones_initializer())
    wrapped = cells.DropoutWrapper(inner, state_keep_prob=0.5, seed=1)
    start = wrapped.zero_state(1, tf.float32)
    _, state = run(wrapped(tf.ones([1, 3]), start))
    assert (state.c != 0).all() and (state.h == 0).any()
    every = cells.DropoutWrapper(
        inner, state_keep_prob=0.5, seed=1, dropout_state_filter_visitor=lambda s: type(s)(1, 1)
    )
    with tf.variable_scope("", reuse=True):
        _, state = run(every(tf.ones([1, 3]), start))
    assert (state.c == 0).any()


def test_a_way_past_the_cell():
    x = tf.ones([1, 64])
    zero = tf.zeros([1, 64])
    assert (run(cells.ResidualWrapper(Same())(x, zero)[0]) == 2).all()
    other = cells.ResidualWrapper(Same(), lambda given, made: given - made)
    assert (run(other(x, zero)[0]) == 0).all()
    with pytest.raises(ValueError, match="incompatible"):
        cells.ResidualWrapper(cells.BasicRNNCell(3))(x, tf.zeros([1, 3]))


def test_a_device():
    wrapped = cells.DeviceWrapper(cells.BasicRNNCell(3), "/cpu:14159")
    output, _ = wrapped(tf.zeros([1, 2]), tf.zeros([1, 3]))
    assert "cpu:14159" in output.device.lower()
    assert wrapped.zero_state(1, tf.float32).device.lower().endswith("cpu:14159")
    assert wrapped.wrapped_cell.trainable_variables == wrapped.trainable_variables != []


@pytest.mark.parametrize(
    "wrap",
    [
        tf.nn.rnn_cell.DropoutWrapper,
        tf.nn.rnn_cell.ResidualWrapper,
        lambda cell: tf.nn.rnn_cell.DeviceWrapper(cell, "/cpu:0"),
        lambda cell: tf.nn.rnn_cell.MultiRNNCell([cell]),
    ],
)
def test_checkpoints_of_objects_have_the_cell_inside(wrap, tmp_path):
    cell = tf.nn.rnn_cell.BasicRNNCell(1)
    wrapper = wrap(cell)
    wrapper(tf.ones([1, 1]), wrapper.zero_state(1, tf.float32))
    (bias,) = [v for v in cell.variables if "bias" in v.name]
    checkpoint = tf.train.Checkpoint(wrapper=wrapper)
    with tf.Session() as session:
        session.run([v.initializer for v in cell.variables])
        session.run(bias.assign([40.0]))
        path = checkpoint.save(str(tmp_path / "ckpt"), session=session)
        session.run(bias.assign([0.0]))
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        assert session.run(bias).tolist() == [40.0]
