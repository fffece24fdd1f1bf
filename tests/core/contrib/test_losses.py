"""`tf.contrib.losses.metric_learning`, against sums over all triplets and pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.losses import metric_learning as losses

LABELS = np.array([0, 1, 0, 2, 1, 0])
RNG = np.random.Generator(np.random.Philox(5))
POINTS = RNG.normal(size=(6, 3)).astype(np.float32)
SQUARED = ((POINTS[:, None] - POINTS[None]) ** 2).sum(-1)
PAIRS = [(a, p) for a in range(6) for p in range(6) if a != p and LABELS[a] == LABELS[p]]


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_triplets() -> None:
    total = 0.0
    for a, p in PAIRS:
        others = [SQUARED[a, n] for n in range(6) if LABELS[n] != LABELS[a]]
        farther = [d for d in others if d > SQUARED[a, p]]
        total += max(1.0 + SQUARED[a, p] - (min(farther) if farther else max(others)), 0)
    x = tf.constant(POINTS)
    loss = losses.triplet_semihard_loss(tf.constant(LABELS), x)
    found, slopes = run([loss, tf.gradients(loss, x)[0]])
    assert found == pytest.approx(total / len(PAIRS), rel=1e-5)
    assert np.isfinite(slopes).all() and np.abs(slopes).max() > 0
    assert loss.op.name == "triplet_semihard_loss"


def test_triplets_of_equal_points_have_finite_slopes() -> None:
    x = tf.constant(np.ones((4, 2), np.float32))
    labels = tf.constant([0, 0, 1, 1])
    both = losses.triplet_semihard_loss(labels, x) + losses.lifted_struct_loss(labels, x)
    assert np.isfinite(run(tf.gradients(both, x)[0])).all()


def test_lifted_structure() -> None:
    distances, total = np.sqrt(SQUARED), 0.0
    for i, j in PAIRS:
        terms = sum(
            math.exp(1.0 - distances[k, n])
            for k in (i, j)
            for n in range(6)
            if LABELS[n] != LABELS[k]
        )
        total += 0.25 * max(math.log(terms) + distances[i, j], 0) ** 2
    found = run(losses.lifted_struct_loss(tf.constant(LABELS), tf.constant(POINTS)))
    assert found == pytest.approx(total / (len(PAIRS) / 2), rel=1e-5)


def test_pairs() -> None:
    together = np.array([1, 0, 1, 0, 0, 1], np.float32)
    distances = np.sqrt(((POINTS - POINTS[::-1]) ** 2).sum(1))
    wanted = np.where(together, distances**2, np.maximum(2.0 - distances, 0) ** 2).mean()
    found = run(losses.contrastive_loss(together, POINTS, POINTS[::-1].copy(), margin=2.0))
    assert found == pytest.approx(wanted, rel=1e-5)


def test_several_positives_and_shared_labels() -> None:
    products = POINTS @ POINTS.T
    shares = products - np.log(np.exp(products).sum(1, keepdims=True))
    alike = (LABELS[:, None] == LABELS).astype(float)
    entropy = -(shares * alike / alike.sum(1, keepdims=True)).sum(1).mean()
    wanted = entropy + 0.25 * 0.002 * 2 * (POINTS**2).sum(1).mean()
    x = tf.constant(POINTS)
    assert run(losses.npairs_loss(tf.constant(LABELS), x, x)) == pytest.approx(wanted, rel=1e-5)
    sparse = [tf.SparseTensor([[int(n)]], [1], [3]) for n in LABELS]
    found = run(losses.npairs_loss_multilabel(sparse, x, x, print_losses=True))
    assert found == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(TypeError, match="must be a list of SparseTensors"):
        losses.npairs_loss_multilabel([x], x, x)
    with pytest.raises(ValueError, match="must have rank 1"):
        losses.npairs_loss([[1]], x, x)
