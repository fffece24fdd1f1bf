"""`tf.contrib.seq2seq`: decoding, attention, beam search against every sequence written out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import opdock as tf

seq2seq = tf.contrib.seq2seq
RNG = np.random.RandomState(1)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Table(tf.nn.rnn_cell.RNNCell):
    """A cell whose output is a row of a table: logits that depend on the id before alone."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__()
        self._rows = tf.constant(rows, tf.float32)

    @property
    def state_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return int(self._rows.shape[1])

    def call(self, inputs: Any, state: Any) -> Any:
        return tf.matmul(inputs, self._rows), state + 1


# --------------------------------------------------------------------------------- decoding
def test_training_reads_the_true_sequence_and_stops_at_its_end() -> None:
    inputs = RNG.randn(2, 4, 3).astype(np.float32)
    cell = tf.nn.rnn_cell.GRUCell(5)
    helper = seq2seq.TrainingHelper(inputs, [4, 2])
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    (outputs, ids), state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
    with tf.variable_scope("decoder", reuse=True):
        plain, last = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.GRUCell(5, name="gru_cell"), tf.constant(inputs), [4, 2],
            dtype=tf.float32, scope=tf.get_variable_scope(),
        )  # fmt: skip
    got, wanted, best, n, s, w = run([outputs, plain, ids, lengths, state, last])
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    np.testing.assert_allclose(s, w, rtol=1e-5)
    assert n.tolist() == [4, 2]
    assert best[0].tolist() == got[0].argmax(-1).tolist()


def test_greedy_decoding_follows_the_best_id_until_the_end() -> None:
    rows = np.full((4, 4), -5.0)
    for here, there in ((0, 2), (2, 1), (1, 3), (3, 3)):
        rows[here, there] = 1.0
    helper = seq2seq.GreedyEmbeddingHelper(tf.eye(4), [0, 1], 3)
    cell = Table(rows)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    (_, ids), _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=8)
    found, n = run([ids, lengths])
    assert found[0].tolist() == [2, 1, 3] and found[1][0] == 3
    assert n.tolist() == [3, 1]
    outputs, *_ = seq2seq.dynamic_decode(decoder, maximum_iterations=2, output_time_major=True)
    assert run(outputs.sample_id).shape == (2, 2)


def test_scheduled_sampling_mixes_true_inputs_and_own_ones() -> None:
    inputs = tf.zeros([3, 5, 4])
    cell = Table(np.eye(4) + [0, 0, 1, 0])
    for chance, wanted in ((0.0, {-1}), (1.0, {0, 1, 2, 3})):
        helper = seq2seq.ScheduledEmbeddingTrainingHelper(
            inputs, [5, 5, 5], tf.eye(4), chance, seed=1, scheduling_seed=2
        )
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
        (_, ids), _, _ = seq2seq.dynamic_decode(decoder)
        assert set(np.ravel(run(ids))) <= wanted
    helper = seq2seq.ScheduledOutputTrainingHelper(inputs, [5, 5, 2], 1.0)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    (outputs, _), _, lengths = seq2seq.dynamic_decode(decoder)
    assert run(lengths).tolist() == [5, 5, 2]
    assert outputs.shape.as_list() == [3, None, 4]


def test_what_is_no_helper_and_no_decoder() -> None:
    cell = Table(np.eye(3))
    with pytest.raises(TypeError, match="helper must be a Helper"):
        seq2seq.BasicDecoder(cell, None, None)
    with pytest.raises(TypeError, match="Expected decoder to be type Decoder"):
        seq2seq.dynamic_decode(cell)
    with pytest.raises(ValueError, match="start_tokens must be a vector"):
        seq2seq.GreedyEmbeddingHelper(tf.eye(3), 0, 1)
    with pytest.raises(ValueError, match="batch_size accessed before"):
        _ = seq2seq.CustomHelper(None, None, None).batch_size


# --------------------------------------------------------------------------------- attention
def test_luong_attention_is_the_softmax_of_products() -> None:
    memory, query = RNG.randn(2, 4, 3).astype(np.float32), RNG.randn(2, 5).astype(np.float32)
    mechanism = seq2seq.LuongAttention(5, memory, memory_sequence_length=[4, 2])
    alignments, state = mechanism(tf.constant(query), None)
    (kernel,) = tf.trainable_variables()
    assert kernel.op.name == "memory_layer/kernel"
    weights, got = run([kernel, alignments])
    masked = memory * (np.arange(4)[None, :, None] < np.array([4, 2])[:, None, None])
    scores = np.einsum("btk,bk->bt", masked @ weights, query)
    scores[1, 2:] = -np.inf
    np.testing.assert_allclose(got, softmax(scores), rtol=1e-4)
    assert state is alignments


def test_bahdanau_attention_is_the_softmax_of_a_layer() -> None:
    memory, query = RNG.randn(2, 4, 3).astype(np.float32), RNG.randn(2, 6).astype(np.float32)
    mechanism = seq2seq.BahdanauAttention(5, memory, normalize=True)
    alignments, _ = mechanism(tf.constant(query), None)
    made = {v.op.name: v for v in tf.trainable_variables()}
    values, got = run([made, alignments])
    v, g = values["bahdanau_attention/attention_v"], values["bahdanau_attention/attention_g"]
    keys = memory @ values["memory_layer/kernel"]
    asked = (query @ values["bahdanau_attention/query_layer/kernel"])[:, None]
    v = g * v / np.sqrt(np.sum(v**2))
    total = keys + asked + values["bahdanau_attention/attention_b"]
    np.testing.assert_allclose(got, softmax((v * np.tanh(total)).sum(-1)), rtol=1e-4)


@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_monotonic_attention_never_goes_back(mode: str) -> None:
    stop = RNG.rand(3, 5).astype(np.float32)
    if mode == "hard":
        stop = np.round(stop)
    before = np.eye(5, dtype=np.float32)[[0, 1, 4]]
    got = run(seq2seq.monotonic_attention(stop, before, mode))
    wanted = np.zeros((3, 5))
    for row, start in enumerate([0, 1, 4]):
        reached = 1.0
        for place in range(start, 5):
            wanted[row, place] = reached * stop[row, place]
            reached *= 1 - stop[row, place]
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    with pytest.raises(ValueError, match="mode must be"):
        seq2seq.monotonic_attention(stop, before, "other")


def test_a_wrapped_cell_keeps_what_it_looked_at() -> None:
    memory = tf.constant(RNG.randn(2, 4, 3), tf.float32)
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.LSTMCell(6),
        [seq2seq.LuongAttention(6, memory), seq2seq.BahdanauMonotonicAttention(5, memory)],
        attention_layer_size=[3, 4], alignment_history=True,
    )  # fmt: skip
    assert cell.output_size == 7
    assert [type(m).__name__ for m in cell._attention_mechanisms] == [
        "LuongAttention", "BahdanauMonotonicAttention",
    ]  # fmt: skip
    helper = seq2seq.TrainingHelper(tf.ones([2, 5, 2]), [5, 5])
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    (outputs, _), state, _ = seq2seq.dynamic_decode(decoder)
    histories = [h.stack() for h in state.alignment_history]
    got, (first, second), last = run([outputs, histories, state.alignments])
    assert got.shape == (2, 5, 7) and first.shape == second.shape == (5, 2, 4)
    np.testing.assert_allclose(first.sum(-1), np.ones((5, 2)), rtol=1e-5)
    np.testing.assert_allclose(second[-1], last[1])


def test_a_memory_of_another_batch_is_told() -> None:
    memory = tf.placeholder(tf.float32, [None, 4, 6])
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(6), seq2seq.LuongAttention(6, memory), name="look"
    )
    state = cell.zero_state(3, tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Are you using the BeamSearchDecoder"):
        run(state.cell_state, {memory: np.zeros((2, 4, 6))})
    with pytest.raises(TypeError, match="must be an AttentionMechanism"):
        seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(6), None)
    with pytest.raises(ValueError, match="exactly one integer per"):
        seq2seq.AttentionWrapper(
            tf.nn.rnn_cell.GRUCell(6), seq2seq.LuongAttention(6, memory), [1, 2]
        )


# --------------------------------------------------------------------------------- beam search
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_wide_beams_find_the_best_of_all_sequences(penalty: float) -> None:
    classes, end, steps = 4, 3, 3
    rows = RNG.randn(classes, classes)
    logs = np.log(softmax(rows))
    width = classes**2
    cell = Table(rows)
    decoder = seq2seq.BeamSearchDecoder(
        cell, tf.eye(classes), [0, 2], end, cell.zero_state(2 * width, tf.float32), width,
        length_penalty_weight=penalty,
    )  # fmt: skip
    final, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=steps)
    ids, log_probs = run([final.predicted_ids, state.log_probs])
    assert ids.shape == (2, steps, width)
    for example, start in enumerate((0, 2)):
        found: dict[tuple[int, ...], tuple[float, float]] = {}
        for sequence in itertools.product(range(classes), repeat=steps):
            cut = sequence[: sequence.index(end) + 1] if end in sequence else sequence
            total = sum(logs[a, b] for a, b in itertools.pairwise((start, *cut)))
            # As in TF, an end counts for the length from the step after it on.
            length = len(cut) - (cut[-1] == end and len(cut) == steps)
            found[cut] = (total / ((5 + length) / 6) ** penalty, total)
        best = max(found, key=lambda s: found[s][0])
        got = ids[example, :, 0].tolist()
        assert tuple(got[: len(best)]) == best and set(got[len(best) :]) <= {end}
        assert log_probs[example, 0] == pytest.approx(found[best][1], abs=1e-4)


def test_histories_are_sorted_like_the_beams() -> None:
    memory = seq2seq.tile_batch(tf.constant(RNG.randn(2, 4, 6), tf.float32), 3)
    assert memory.shape.as_list() == [6, 4, 6]
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(6), seq2seq.LuongAttention(6, memory), alignment_history=True
    )
    decoder = seq2seq.BeamSearchDecoder(
        cell, tf.get_variable("table", [5, 6]), [0, 0], 4, cell.zero_state(6, tf.float32), 3,
        tf.layers.Dense(5, use_bias=False), coverage_penalty_weight=0.1,
    )  # fmt: skip
    final, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
    history = state.cell_state.alignment_history
    ids, seen = run([final.predicted_ids, history])
    assert ids.shape[2] == 3 and seen.shape[1:] == (6, 4)
    with pytest.raises(ValueError, match="must be 0.0 if no cell is attentional"):
        plain = Table(np.eye(3))
        seq2seq.dynamic_decode(seq2seq.BeamSearchDecoder(
            plain, tf.eye(3), [0], 2, plain.zero_state(2, tf.float32), 2,
            coverage_penalty_weight=1.0,
        ))  # fmt: skip


def test_arrays_are_sorted_by_parents() -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    parents = np.array([[[0, 0]], [[1, 0]], [[1, 0]]], np.int32)
    got = run(seq2seq.gather_tree_from_array(tf.constant(array), parents, [[3, 3]]))
    assert got[:, 0].T.tolist() == [[0, 3, 4], [1, 2, 5]]


# --------------------------------------------------------------------------------- losses
def test_sequence_loss_divides_by_what_was_asked() -> None:
    logits, targets = RNG.randn(2, 3, 4).astype(np.float32), RNG.randint(0, 4, (2, 3))
    weights = np.array([[1, 1, 0], [1, 0.5, 0]], np.float32)
    losses = -np.log(np.take_along_axis(softmax(logits), targets[..., None], -1))[..., 0] * weights

    def loss(**kwargs):
        return run(seq2seq.sequence_loss(*map(tf.constant, (logits, targets, weights)), **kwargs))

    off = {"average_across_timesteps": False, "average_across_batch": False}
    np.testing.assert_allclose(loss(), losses.sum() / weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(loss(**off), losses, rtol=1e-5)
    np.testing.assert_allclose(
        loss(**off, sum_over_timesteps=True, sum_over_batch=True), losses.sum() / 4, rtol=1e-5
    )
    np.testing.assert_allclose(
        loss(average_across_timesteps=False), [losses[:, 0].sum() / 2, losses[:, 1].sum() / 1.5, 0],
        rtol=1e-5,
    )  # fmt: skip
    with pytest.raises(ValueError, match="Logits must be"):
        seq2seq.sequence_loss(tf.constant(logits[0]), tf.constant(targets), tf.constant(weights))


def test_sequence_loss_is_a_loss_of_labels_and_logits() -> None:
    random = np.random.RandomState(7)
    logits, targets = random.randn(2, 3, 4).astype(np.float32), random.randint(0, 4, [2, 3])
    weights = np.array([[1, 0, 2], [0, 0, 0.5]], np.float32)
    asked = {"average_across_timesteps": False, "average_across_batch": False}
    given = {**asked, "sum_over_timesteps": True, "sum_over_batch": True}
    as_function = seq2seq.sequence_loss(*map(tf.constant, (logits, targets, weights)), **given)
    as_loss = seq2seq.SequenceLoss()(targets, logits, weights)
    mean = seq2seq.SequenceLoss(sum_over_timesteps=False, sum_over_batch=False)
    wanted, got, each, alone = run([
        as_function, as_loss, mean(targets, logits), seq2seq.SequenceLoss()(targets, logits),
    ])  # fmt: skip
    assert got == wanted
    assert each.shape == (2, 3)
    np.testing.assert_allclose(alone, each.mean(), rtol=1e-6)
