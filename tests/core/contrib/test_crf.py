"""Conditional random fields, against all sequences written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opdock as tf

crf = tf.contrib.crf
RNG = np.random.RandomState(5)
SCORES = RNG.randn(3, 4, 3).astype(np.float32)
MOVES = RNG.randn(3, 3).astype(np.float32)
TAGS = RNG.randint(0, 3, (3, 4)).astype(np.int32)
LENGTHS = np.array([4, 2, 1], np.int32)


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def score(row: int, tags: tuple[int, ...]) -> float:
    steps = sum(SCORES[row, i, tag] for i, tag in enumerate(tags))
    return steps + sum(MOVES[a, b] for a, b in itertools.pairwise(tags))


def sequences(row: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(3), repeat=int(LENGTHS[row])))


def test_scores_and_their_norm_are_those_of_all_sequences() -> None:
    got, norm = run([
        crf.crf_sequence_score(SCORES, TAGS, LENGTHS, MOVES),
        crf.crf_log_norm(tf.constant(SCORES), LENGTHS, tf.constant(MOVES)),
    ])  # fmt: skip
    wanted = [score(row, tuple(TAGS[row, :n])) for row, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    total = [np.logaddexp.reduce([score(row, s) for s in sequences(row)]) for row in range(3)]
    np.testing.assert_allclose(norm, total, rtol=1e-5)


def test_the_likelihood_makes_a_variable_and_has_a_gradient() -> None:
    inputs = tf.placeholder(tf.float32, [None, None, 3])
    likelihood, transitions = crf.crf_log_likelihood(inputs, TAGS, LENGTHS)
    assert transitions.op.name == "transitions"
    (gradient,) = tf.gradients(likelihood, [inputs])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, slope = session.run([likelihood, gradient], {inputs: SCORES})
    assert (found <= 0).all()
    # A probability less 1 at each true tag: the sums over tags are 0, and all behind the end.
    np.testing.assert_allclose(slope.sum(-1), np.zeros((3, 4)), atol=1e-5)
    assert (slope[1, 2:] == 0).all()
    tf.reset_default_graph()


def test_decoding_finds_the_best_sequence() -> None:
    tags, best = run(crf.crf_decode(tf.constant(SCORES), tf.constant(MOVES), LENGTHS))
    for row, length in enumerate(LENGTHS):
        wanted = max(sequences(row), key=lambda s: score(row, s))
        assert tuple(tags[row, :length]) == wanted
        assert (tags[row, length:] == 0).all()
        assert best[row] == pytest.approx(score(row, wanted), rel=1e-5)
        assert crf.viterbi_decode(SCORES[row, :length], MOVES)[0] == list(wanted)


def test_sequences_of_one_step_whose_length_is_known_only_when_it_runs() -> None:
    scores = tf.placeholder(tf.float32, [None, None, 3])
    outputs = crf.crf_decode(scores, tf.constant(MOVES), [1, 1])
    with tf.Session() as session:
        tags, best = session.run(outputs, {scores: SCORES[:2, :1]})
    assert tags.tolist() == SCORES[:2, :1].argmax(-1).tolist()
    np.testing.assert_allclose(best, SCORES[:2, 0].max(-1))


def test_several_tags_may_be_right() -> None:
    allowed = RNG.rand(3, 4, 3) < 0.7
    allowed[:, :, 0] = True
    got = run(crf.crf_multitag_sequence_score(tf.constant(SCORES), allowed, LENGTHS, MOVES))
    for row in range(3):
        right = [
            s for s in sequences(row) if all(allowed[row, step, tag] for step, tag in enumerate(s))
        ]
        total = np.logaddexp.reduce([score(row, s) for s in right])
        assert got[row] == pytest.approx(total, rel=1e-5)
