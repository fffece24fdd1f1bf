"""Attention of a program's own, made of what `tf.contrib.seq2seq` has for its own mechanisms."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.mapping import resolve

WHERE = "contrib.seq2seq.python.ops.attention_wrapper"
BATCH, PLACES, UNITS = 2, 5, 3
LENGTHS = np.array([3, 5])
MEMORY = np.random.RandomState(0).randn(BATCH, PLACES, UNITS).astype(np.float32)


def named(name: str):
    return resolve.internal(WHERE, name)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


class LocationSensitive(named("_BaseAttentionMechanism")):
    """Scores that also see where attention was (Chorowski et al. 2015), as programs write it."""

    def __init__(self, units: int, memory, lengths) -> None:
        super().__init__(
            query_layer=tf.layers.Dense(units, name="query_layer", use_bias=False),
            memory_layer=tf.layers.Dense(units, name="memory_layer", use_bias=False),
            memory=memory,
            probability_fn=lambda score, _: tf.nn.softmax(score),
            memory_sequence_length=lengths,
            score_mask_value=float("-inf"),
            name="Location",
        )
        self._units = units

    def __call__(self, query, state):
        with tf.variable_scope(None, "location", [query]):
            seen = tf.layers.conv1d(tf.expand_dims(state, 2), 4, 3, padding="same", name="seen")
            places = tf.layers.dense(seen, self._units, use_bias=False, name="places")
            v = tf.get_variable("attention_v", [self._units])
            score = named("_bahdanau_score")(self.query_layer(query), self.keys + places, v)
        found = self._probability_fn(score, state)
        return found, found + state


def test_a_mechanism_of_ones_own_attends_within_lengths() -> None:
    mechanism = LocationSensitive(UNITS, MEMORY, LENGTHS)
    cell = tf.contrib.seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(UNITS), mechanism, alignment_history=True
    )
    inputs = np.ones([BATCH, 4, UNITS], np.float32)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
    gradients = tf.gradients(tf.reduce_sum(tf.square(outputs)), tf.trainable_variables())
    history, total, slopes = run(
        [state.alignment_history.stack(), state.attention_state, gradients]
    )
    np.testing.assert_allclose(history.sum(2), 1, rtol=1e-5)
    assert (history[:, 0, 3:] == 0).all() and (history[:, 0, :3] > 0).all()
    np.testing.assert_allclose(history.sum(0), total, rtol=1e-5)
    assert all(np.isfinite(slope).all() for slope in slopes)


def test_scores_are_what_their_papers_say() -> None:
    query = np.array([[1.0, 2, 0], [0, -1, 1]], np.float32)
    v = np.array([0.5, -1, 2], np.float32)
    tanh = np.tanh(MEMORY + query[:, None])
    normed = 3.0 * v / np.sqrt((v**2).sum())
    additive = named("_bahdanau_score")
    plain, shifted, product = run(
        [
            additive(query, MEMORY, v),
            additive(query, MEMORY, v, attention_g=3.0, attention_b=np.zeros(3, np.float32)),
            named("_luong_score")(tf.constant(query), tf.constant(MEMORY), 2.0),
        ]
    )
    np.testing.assert_allclose(plain, (tanh * v).sum(2), rtol=1e-5)
    np.testing.assert_allclose(shifted, (tanh * normed).sum(2), rtol=1e-5)
    np.testing.assert_allclose(product, 2 * np.einsum("bu,bpu->bp", query, MEMORY), rtol=1e-4)


@pytest.mark.parametrize("by", ["memory_sequence_length", "memory_mask"])
def test_memory_and_scores_end_where_examples_do(by: str) -> None:
    inside = np.arange(PLACES) < LENGTHS[:, None]
    given = {by: LENGTHS if by == "memory_sequence_length" else inside}
    memory, scores = run(
        [
            named("_prepare_memory")(MEMORY, **given),
            named("_maybe_mask_score")(tf.ones([BATCH, PLACES]), score_mask_value=-7.0, **given),
        ]
    )
    np.testing.assert_array_equal(memory, MEMORY * inside[:, :, None])
    np.testing.assert_array_equal(scores, np.where(inside, 1, -7))


def test_a_length_and_a_mask_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="same time"):
        named("_prepare_memory")(MEMORY, LENGTHS, np.ones([BATCH, PLACES], bool))


def test_what_is_found_goes_through_a_layer() -> None:
    mechanism = tf.contrib.seq2seq.LuongAttention(UNITS, MEMORY)
    output = tf.ones([BATCH, UNITS])
    state = mechanism.initial_state(BATCH, tf.float32)
    found, alignments, _ = named("_compute_attention")(mechanism, output, state, None)
    joined, _, _ = named("_compute_attention")(mechanism, output, state, lambda both: both * 2)
    found, alignments, joined = run([found, alignments, joined])
    np.testing.assert_allclose(found, np.einsum("bp,bpu->bu", alignments, MEMORY), rtol=1e-5)
    both = np.concatenate([np.ones([BATCH, UNITS]), found], 1)
    np.testing.assert_allclose(joined, 2 * both, rtol=1e-5)
