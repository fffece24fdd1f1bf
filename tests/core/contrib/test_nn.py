"""`tf.contrib.nn` and `tf.contrib.sparsemax`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import nn, sparsemax


def run(fetches: Any, **feeds: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches, **feeds)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    tf.set_random_seed(1)
    x = tf.random_normal([20000], seed=2)
    found = run(nn.alpha_dropout(x, 0.8, seed=3))
    assert abs(found.mean()) < 0.03 and abs(found.std() - 1) < 0.03
    assert nn.alpha_dropout(x, 1.0) is x
    with pytest.raises(ValueError, match=r"in the range \(0, 1\], got 2"):
        nn.alpha_dropout(x, 2)


def test_scaled_softplus() -> None:
    x, alpha = tf.constant([-30.0, -1.0, 0.5, 400.0]), tf.constant(2.0)
    y = nn.scaled_softplus(x, alpha, clip=5.0)
    found, slopes = run([y, tf.gradients(y, [x, alpha])])
    exact = 2 * np.log1p(np.exp(np.array([-30, -1, 0.5]) / 2))
    np.testing.assert_allclose(found, [*exact, 5], rtol=1e-5, atol=1e-7)
    at = 1 / (1 + np.exp(-np.array([-30, -1, 0.5]) / 2))
    np.testing.assert_allclose(slopes[0], [*at, 0], rtol=1e-5, atol=1e-7)
    wanted = (exact / 2 - np.array([-30, -1, 0.5]) / 2 * at).sum()
    np.testing.assert_allclose(slopes[1], wanted, rtol=1e-5)


def test_derivatives_forwards() -> None:
    x, unused = tf.constant([1.0, 2.0]), tf.constant(3.0)
    y = [tf.square(x) * x[0], tf.reduce_sum(x)]
    moved = nn.fwd_gradients(y, [x, unused], [tf.constant([1.0, -1.0]), unused], assert_unused=True)
    found = run(moved)
    # d(x0^3) = 3 x0^2 dx0, d(x1^2 x0) = x1^2 dx0 + 2 x0 x1 dx1
    assert [v.tolist() for v in found] == [[3, 0], 0]


def test_drawn_classes_that_are_near() -> None:
    weights = tf.constant(np.eye(6, 4), tf.float32)
    sampled = ([1, 2, 3, 4], [[0.5]], [0.5] * 4)
    arguments = {
        "weights": weights, "biases": tf.zeros([6]), "labels": [[0]],
        "inputs": [[0.0, 3.0, 2.0, 1.0]], "num_classes": 6, "num_true": 1,
        "remove_accidental_hits": True, "partition_strategy": "div",
    }  # fmt: skip
    found = nn.rank_sampled_softmax_loss(
        num_sampled=4, num_resampled=2, sampled_values=sampled, resampling_temperature=1.0,
        **arguments,
    )  # fmt: skip
    kept = ([1, 2], [[0.5]], [0.5] * 2)
    wanted = tf.nn.sampled_softmax_loss(num_sampled=2, sampled_values=kept, **arguments)
    one, other = run([found, wanted])
    np.testing.assert_allclose(one, other, rtol=1e-6)
    with pytest.raises(ValueError, match=r"num_resampled \(4\) must be less than num_sampled"):
        nn.rank_sampled_softmax_loss(
            num_sampled=4, num_resampled=4, sampled_values=sampled, resampling_temperature=1.0,
            **arguments,
        )  # fmt: skip


def test_arguments_the_other_way_round() -> None:
    logits, labels = tf.constant([[1.0, 2.0]]), tf.constant([[0.0, 1.0]])
    pairs = [
        (
            nn.deprecated_flipped_softmax_cross_entropy_with_logits(logits, labels),
            tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits),
        ),
        (
            nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(logits, labels),
            tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits),
        ),
        (
            nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, [1]),
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=logits),
        ),
    ]
    for one, other in run(pairs):
        np.testing.assert_array_equal(one, other)


def test_sparsemax_and_its_loss() -> None:
    logits = tf.constant([[1.0, 0.8, -1.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    p = sparsemax.sparsemax(logits)
    labels = tf.constant([[1.0, 0.0, 0.0]] * 3)
    loss = sparsemax.sparsemax_loss(logits, p, labels)
    found, value, slopes = run([p, loss, tf.gradients(loss, logits)[0]])
    np.testing.assert_allclose(found, [[0.6, 0.4, 0], [1, 0, 0], [1 / 3] * 3], atol=1e-6)
    np.testing.assert_allclose(slopes, found - [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(value, [0.16, 0, 1 / 3], atol=1e-6)
    undefined = run(sparsemax.sparsemax([[np.nan, 1.0], [-np.inf, -np.inf]]))
    assert np.isnan(undefined).all()
