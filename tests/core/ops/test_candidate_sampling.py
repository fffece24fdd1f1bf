"""Candidate samplers and the losses over what they draw."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

TRUE = np.array([[0, 2], [1, 1]], np.int64)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def run(fetch, times=1):
    with tf.Session() as session:
        found = [session.run(fetch) for _ in range(times)]
    return found[0] if times == 1 else found


def test_unique_draws_are_different_and_repeat_with_the_seed():
    for sampler in (
        tf.random.uniform_candidate_sampler,
        tf.nn.log_uniform_candidate_sampler,
        tf.nn.learned_unigram_candidate_sampler,
    ):
        drawn = sampler(TRUE, 2, 40, True, 50, seed=3)
        assert drawn[0].shape == (40,) and drawn[1].shape == (2, 2)
        first, second = run(drawn, times=2)
        assert len(set(first[0])) == 40 and set(first[0]) <= set(range(50))
        assert first[0].tolist() != second[0].tolist()
        assert run(drawn)[0].tolist() == first[0].tolist()


def test_expected_counts():
    _, of_true, of_drawn = run(tf.nn.uniform_candidate_sampler(TRUE, 2, 5, False, 10))
    assert np.allclose(of_true, 0.5) and np.allclose(of_drawn, 0.5)
    _, of_true, _ = run(tf.nn.log_uniform_candidate_sampler(TRUE, 2, 3, False, 10))
    p = np.log((TRUE + 2) / (TRUE + 1)) / np.log(11)
    assert np.allclose(of_true, 3 * p)
    drawn, of_true, _ = run(tf.nn.all_candidate_sampler(TRUE, 2, 3, True))
    assert drawn.tolist() == [0, 1, 2] and of_true.tolist() == [[1, 1], [1, 1]]


def test_a_sampler_learns_in_its_session():
    classes = np.full([1000, 1], 7, np.int64)
    drawn = tf.nn.learned_unigram_candidate_sampler(classes, 1, 100, False, 10, seed=1)
    first, second = run(drawn, times=2)
    assert np.allclose(first[1], 10.0) and np.allclose(second[1], 100 * 1001 / 1010)
    assert np.mean(second[0] == 7) > 0.9
    bad = tf.nn.learned_unigram_candidate_sampler([[10]], 1, 1, False, 10)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, 10\)"):
        run(bad)


def test_weights_of_a_file(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("the,3\nof,1\n")
    drawn = tf.nn.fixed_unigram_candidate_sampler(TRUE, 2, 400, False, 3, vocab_file=str(path),
                                                  num_reserved_ids=1, seed=2)  # fmt: skip
    found = run(drawn)
    assert np.allclose(found[1], [[0, 100], [300, 300]])
    assert 0 not in found[0] and 0.68 < np.mean(found[0] == 1) < 0.82
    path.write_text("the,much\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong vocabulary format at line"):
        run(drawn)
    none = tf.nn.fixed_unigram_candidate_sampler(TRUE, 2, 4, False, 3, vocab_file="/no/such")
    with pytest.raises(tf.errors.InvalidArgumentError, match="/no/such"):
        run(none)


def test_accidental_hits():
    rows, ids, weights = run(tf.nn.compute_accidental_hits(TRUE, np.array([1, 5, 2]), 2))
    assert rows.tolist() == [0, 1, 1] and ids.tolist() == [2, 0, 0]
    assert (weights == np.finfo(np.float32).min).all()


# ---------------------------------------------------------------- losses
RNG = np.random.RandomState(0)
WEIGHTS, BIASES = RNG.randn(6, 3), RNG.randn(6)
INPUTS, LABELS = RNG.randn(4, 3), np.array([[0], [5], [3], [3]], np.int64)


def logits():
    return INPUTS @ WEIGHTS.T + BIASES


def every(labels):
    """All classes drawn, each expected once: nothing to correct for."""
    return tf.nn.all_candidate_sampler(labels, labels.shape[1], 6, True)


def test_sampled_softmax_of_all_classes_is_softmax():
    loss = tf.nn.sampled_softmax_loss(
        tf.constant(WEIGHTS), tf.constant(BIASES), LABELS, INPUTS, 6, 6,
        sampled_values=every(LABELS),
    )  # fmt: skip
    full = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=LABELS[:, 0], logits=logits())
    found, want = run([loss, full])
    assert np.allclose(found, want)


def test_nce_of_all_classes_is_logistic_regression():
    labels = np.array([[0, 1], [5, 5], [3, 2], [3, 3]], np.int64)
    loss = tf.nn.nce_loss(
        [tf.constant(WEIGHTS[0::2]), tf.constant(WEIGHTS[1::2])], tf.constant(BIASES), labels,
        tf.constant(INPUTS), 6, 6, num_true=2, sampled_values=every(labels),
    )  # fmt: skip
    x = logits()
    negative = np.log1p(np.exp(x)).sum(1)
    # Each of the two targets counts half.
    chosen = np.take_along_axis(x, labels, 1)
    positive = (np.log1p(np.exp(chosen)) - chosen / 2).sum(1)
    assert np.allclose(run(loss), negative + positive)


def test_gradients_reach_only_the_rows_looked_up():
    weights = tf.constant(WEIGHTS)
    drawn = tf.nn.uniform_candidate_sampler(LABELS, 1, 1, True, 1)
    loss = tf.nn.nce_loss(weights, tf.constant(BIASES), LABELS, INPUTS, 1, 6, sampled_values=drawn)
    (gradient,) = tf.gradients(loss, weights)
    assert isinstance(gradient, tf.IndexedSlices)
    dense = run(tf.convert_to_tensor(gradient))
    assert set(np.flatnonzero(np.abs(dense).sum(1))) == {0, 3, 5}
