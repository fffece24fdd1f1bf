"""CTC over dense labels, and beams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(*fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(list(fetches))


LOGITS = np.random.default_rng(3).normal(size=(5, 2, 4)).astype(np.float32)
LABELS = [[1, 2, 0], [3, 3, 1]]
LENGTHS = [2, 3]


@pytest.mark.parametrize("blank", [0, 2, -1])
def test_any_class_may_be_the_blank(blank: int) -> None:
    at = blank % 4
    labels = np.array([[1, 3, 1], [3, 3, 1]]) if at != 3 else np.array([[1, 2, 1], [0, 0, 1]])
    logits = tf.constant(LOGITS)
    dense = tf.nn.ctc_loss_v2(labels, logits, LENGTHS, [5, 5], blank_index=blank)
    moved = np.concatenate([np.delete(LOGITS, at, 2), LOGITS[:, :, at : at + 1]], 2)
    after = np.where(labels < at, labels, labels - 1)
    indices = [[b, i] for b, n in enumerate(LENGTHS) for i in range(n)]
    values = np.array([after[b, i] for b, i in indices], np.int32)
    sparse = tf.SparseTensor(indices, values, [2, 3])
    wanted = tf.nn.ctc_loss(sparse, moved, [5, 5])
    a, b, grad = run(dense, wanted, tf.gradients(dense, logits)[0])
    np.testing.assert_allclose(a, b, rtol=1e-5)
    assert np.abs(grad).sum() > 0
    major = tf.nn.ctc_loss_v2(
        labels, LOGITS.transpose(1, 0, 2), LENGTHS, [5, 5], logits_time_major=False,
        blank_index=blank, unique=tf.nn.ctc_unique_labels(labels),
    )  # fmt: skip
    np.testing.assert_allclose(run(major)[0], a, rtol=1e-5)


def test_sparse_labels_need_to_know_the_blank() -> None:
    sparse = tf.SparseTensor([[0, 0]], [1], [2, 3])
    with pytest.raises(ValueError, match="blank_index must be given"):
        tf.nn.ctc_loss_v2(sparse, LOGITS, None, [5, 5])


def test_repeated_labels_become_one_and_unique_ones_are_numbered() -> None:
    labels = [[1, 3, 3, 3, 0], [1, 4, 4, 4, 0], [4, 2, 2, 9, 4]]
    found, lengths = run(*tf.nn.collapse_repeated(labels, [4, 5, 5]))
    assert found.tolist() == [[1, 3, 0, 0], [1, 4, 0, 0], [4, 2, 9, 4]]
    assert lengths.tolist() == [2, 3, 4]
    values, which = run(*tf.nn.ctc_unique_labels([[3, 4, 4, 3]]))
    assert values.tolist() == [[3, 4, 0, 0]]
    assert which.tolist() == [[0, 1, 1, 0]]


def test_a_beam_of_one_follows_the_best_prefix() -> None:
    (decoded,), score = tf.nn.ctc_beam_search_decoder_v2(LOGITS * 9.0, [5, 5], beam_width=1)
    (greedy,), _ = tf.nn.ctc_greedy_decoder(LOGITS * 9.0, [5, 5])
    a, b, total = run(decoded, greedy, score)
    assert a.values.tolist() == b.values.tolist()
    assert (total <= 0).all()
