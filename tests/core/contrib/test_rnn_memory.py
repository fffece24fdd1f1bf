"""`NTMCell`, `CFNCell` and `MinimalRNNCell` of `tf.contrib.rnn`, against their papers' formulas."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

rnn = tf.contrib.rnn
HALVES = tf.constant_initializer(0.5)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        tf.set_random_seed(4)
        yield


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def softplus(x):
    return np.log1p(np.exp(x))


@pytest.mark.parametrize("width", [2, 3])
def test_cells_with_gates_give_tensorflows_numbers(width: int) -> None:
    """The numbers of TensorFlow's own tests of the cells."""
    x, m = tf.ones([1, width]), tf.fill([1, 2], 0.1)
    cfn, minimal = (
        kind(2, kernel_initializer=HALVES)(x, m)[0] for kind in (rnn.CFNCell, rnn.MinimalRNNCell)
    )
    got = run([cfn, minimal])
    wanted = {2: (0.17188203, 0.18899589), 3: (0.15535763, 0.19554167)}[width]
    np.testing.assert_allclose(got[0], np.full([1, 2], wanted[0]), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.full([1, 2], wanted[1]), rtol=1e-6)
    assert {v.op.name: v.shape.as_list() for v in tf.global_variables()} == {
        "cfn_cell/kernel": [width, 6], "cfn_cell/recurrent_kernel": [2, 4], "cfn_cell/bias": [4],
        "minimal_rnn_cell/kernel": [width + 4, 2], "minimal_rnn_cell/bias": [2],
    }  # fmt: skip


PLACES, SIZE, READ, WRITE, SHIFT = 7, 3, 2, 1, 2


def turing_step(weights, given, reads_w, memory):
    """What the heads do, out of the controller's output; Graves et al. 2014, 3.1 to 3.3."""
    kernel, bias, out_kernel, out_bias = weights
    flat = np.clip(given @ kernel + bias, -20, 20)
    each = SIZE + 2 * SHIFT + 4
    new = []
    for i, old in enumerate(reads_w):
        p = flat[:, i * each : (i + 1) * each]
        key, strength, gate = np.tanh(p[:, :SIZE]), softplus(p[:, SIZE]), sigmoid(p[:, SIZE + 1])
        shifts, power = softmax(p[:, SIZE + 2 : -1]), softplus(p[:, -1]) + 1
        likeness = np.einsum("bnm,bm->bn", memory, key) / (
            np.linalg.norm(memory, axis=2) * np.linalg.norm(key, axis=1)[:, None] + 1e-8
        )
        content = softmax(strength[:, None] * likeness)
        mixed = gate[:, None] * content + (1 - gate[:, None]) * old
        moved = np.zeros_like(mixed)
        for place in range(PLACES):
            for at, by in enumerate([0, 1, 2, -2, -1]):
                moved[:, place] += mixed[:, (place - by) % PLACES] * shifts[:, at]
        sharp = moved ** power[:, None]
        new.append(sharp / sharp.sum(1, keepdims=True))
    read = [np.einsum("bn,bnm->bm", w, memory) for w in new[:READ]]
    erase, add = np.split(flat[:, each * len(reads_w) :], 2, 1)
    w = new[READ][:, :, None]
    memory = memory * (1 - w * sigmoid(erase)[:, None]) + w * np.tanh(add)[:, None]
    output = np.clip(np.concatenate([given, *read], 1) @ out_kernel + out_bias, -20, 20)
    return output, read, new, memory


class Echo(rnn.RNNCell):
    """A controller whose output is its input, so that the heads alone are left to check."""

    state_size = output_size = 4 + READ * SIZE

    def call(self, inputs, state):
        return inputs, inputs


@pytest.mark.parametrize("batch", [1, 3])
def test_a_turing_machine_is_its_formula_over_two_steps(batch: int) -> None:
    x = np.random.RandomState(1).uniform(-3, 3, [2, batch, 4])
    cell = rnn.NTMCell(Echo(), PLACES, SIZE, READ, WRITE, SHIFT, dtype=tf.float64)
    first, state = cell(tf.constant(x[0]), cell.zero_state(batch, tf.float64))
    second, last = cell(tf.constant(x[1]), state)
    assert cell.output_size == 4 and (state.time, last.time) == (1, 2)
    variables = {v.op.name.split("/")[-1]: v for v in tf.global_variables()}
    got, got_last, held = run([[first, second], last._replace(time=()), variables])
    weights = [
        held[n] for n in ("parameters_kernel", "parameters_bias", "output_kernel", "output_bias")
    ]
    reads = [np.tanh(held[f"initial_read_vector_{i}"]).repeat(batch, 0) for i in range(READ)]
    heads = [
        softmax(held[f"initial_address_weights_{i}"]).repeat(batch, 0) for i in range(READ + WRITE)
    ]
    memory = held["memory"][None].repeat(batch, 0)
    for step in range(2):
        given = np.concatenate([x[step], *reads], 1)
        output, reads, heads, memory = turing_step(weights, given, heads, memory)
        np.testing.assert_allclose(got[step], output, rtol=1e-9)
    np.testing.assert_allclose(got_last.M, memory, rtol=1e-9)
    np.testing.assert_allclose(got_last.w_list, heads, rtol=1e-9)
    np.testing.assert_allclose(got_last.read_vector_list, reads, rtol=1e-9)


def test_a_turing_machine_in_a_loop_takes_batches_of_any_size() -> None:
    data = np.random.RandomState(1).uniform(-1, 1, [3, 4, 5]).astype(np.float32)
    inputs = tf.placeholder_with_default(data, [None, None, 5])
    cell = rnn.NTMCell(rnn.LSTMCell(6), 8, 3, 1, 1, output_dim=2)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
    assert outputs.shape.as_list() == [None, None, 2]
    steps, by_hand = cell.zero_state(3, tf.float32), []
    for step in range(4):
        output, steps = cell(tf.constant(data[:, step]), steps)
        by_hand.append(output)
    loop, time, alone, memory, same = run([outputs, state.time, tf.stack(by_hand, 1), state.M,
                                           steps.M])  # fmt: skip
    assert time == 4
    np.testing.assert_allclose(loop, alone, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(memory, same, rtol=1e-5, atol=1e-7)


def test_a_controller_must_be_a_cell() -> None:
    with pytest.raises(TypeError, match="controller"):
        rnn.NTMCell(object(), 5, 4, 1, 1)
