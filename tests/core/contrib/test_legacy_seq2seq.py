"""`tf.contrib.legacy_seq2seq`: models over lists, their variables and their losses."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

legacy = tf.contrib.legacy_seq2seq
RNG = np.random.RandomState(7)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        tf.set_random_seed(2)
        yield


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


READ = [np.array([1, 2]), np.array([3, 0])]
WRITTEN = [np.array([1, 1]), np.array([2, 3]), np.array([0, 2])]
MODELS = {
    "rnn": lambda fed, cell: legacy.embedding_rnn_seq2seq(
        READ, WRITTEN, cell, 4, 5, 3, feed_previous=fed
    ),
    "tied": lambda fed, cell: legacy.embedding_tied_rnn_seq2seq(
        READ, WRITTEN, cell, 5, 3, feed_previous=fed
    ),
    "attention": lambda fed, cell: legacy.embedding_attention_seq2seq(
        READ, WRITTEN, cell, 4, 5, 3, num_heads=2, feed_previous=fed, initial_state_attention=True
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_tensor_says_whether_a_model_gets_its_own_outputs(name: str) -> None:
    fed = tf.placeholder(tf.bool, [])
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    with tf.variable_scope("model"):
        outputs, state = MODELS[name](fed, cell)
    both = []
    with tf.variable_scope("model", reuse=True):
        for known in (True, False):
            both.append(MODELS[name](known, tf.nn.rnn_cell.BasicLSTMCell(4, reuse=True))[0])
    assert len(outputs) == 3 and isinstance(state, tf.nn.rnn_cell.LSTMStateTuple)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value, wanted in zip((True, False), both, strict=True):
            got, same = session.run([outputs, wanted], {fed: value})
            np.testing.assert_allclose(got, same, rtol=1e-5)
            assert got[0].shape == (2, 5)


def test_names_of_variables_are_those_of_checkpoints() -> None:
    MODELS["attention"](False, tf.nn.rnn_cell.GRUCell(4))
    names = {v.op.name for v in tf.global_variables()}
    top = "embedding_attention_seq2seq"
    parts = (
        "rnn/embedding_wrapper/embedding", "rnn/embedding_wrapper/gru_cell/gates/kernel",
        "embedding_attention_decoder/embedding",
        "embedding_attention_decoder/attention_decoder/AttnW_1",
        "embedding_attention_decoder/attention_decoder/kernel",
        "embedding_attention_decoder/attention_decoder/Attention_0/kernel",
        "embedding_attention_decoder/attention_decoder/AttnOutputProjection/kernel",
    )  # fmt: skip
    assert {f"{top}/{part}" for part in parts} <= names, names


def test_the_decoder_that_feeds_itself_follows_its_function() -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    outputs, _ = legacy.rnn_decoder(
        [tf.zeros([1, 2])] * 3, tf.ones([1, 2]), cell, loop_function=lambda prev, i: prev * i
    )
    kernel, bias = tf.trainable_variables()
    k, got = run([kernel, outputs])
    state, given = np.ones((1, 2)), np.zeros((1, 2))
    for i, out in enumerate(got):
        if i:
            given = state * i
        state = np.tanh(np.concatenate([given, state], 1) @ k)
        np.testing.assert_allclose(out, state, rtol=1e-5)
    assert bias.shape == [2]


def test_one_network_may_write_for_several() -> None:
    outputs, states = legacy.one2many_rnn_seq2seq(
        READ, {"a": WRITTEN, "b": WRITTEN[:2]}, tf.nn.rnn_cell.GRUCell(3),
        {"a": tf.nn.rnn_cell.GRUCell(3), "b": tf.nn.rnn_cell.GRUCell(3)}, 4, {"a": 5, "b": 6}, 2,
    )  # fmt: skip
    assert len(outputs["a"]) == 3 and outputs["b"][0].shape.as_list() == [2, 6]
    assert set(states) == {"a", "b"}


def test_losses_and_buckets() -> None:
    logits = [RNG.randn(2, 4).astype(np.float32) for _ in range(3)]
    targets = [np.array([0, 1]), np.array([2, 3]), np.array([1, 1])]
    weights = [np.array(w, np.float32) for w in ([1, 1], [1, 0], [0.5, 0])]
    chosen = [np.log(np.exp(x).sum(1)) - x[[0, 1], t] for x, t in zip(logits, targets, strict=True)]
    total = sum(c * w for c, w in zip(chosen, weights, strict=True))
    given = [list(map(tf.constant, values)) for values in (logits, targets, weights)]
    by_example = run(legacy.sequence_loss_by_example(*given))
    np.testing.assert_allclose(by_example, total / sum(weights), rtol=1e-5)

    def model(read, written):
        return legacy.basic_rnn_seq2seq(read, written, tf.nn.rnn_cell.GRUCell(4))

    steps = [tf.zeros([2, 4])] * 3
    outputs, losses = legacy.model_with_buckets(
        steps, steps, list(map(tf.constant, targets)), list(map(tf.constant, weights)),
        [(1, 2), (2, 3)], model,
    )  # fmt: skip
    assert [len(o) for o in outputs] == [2, 3] and len(losses) == 2
    assert len(tf.trainable_variables()) == 8
    with pytest.raises(ValueError, match="Length of targets .2. must be at least"):
        legacy.model_with_buckets(steps, steps, targets[:2], weights, [(3, 3)], model)
    with pytest.raises(ValueError, match="must be the same 3, 3, 2"):
        legacy.sequence_loss_by_example(logits, targets[:2], weights)
