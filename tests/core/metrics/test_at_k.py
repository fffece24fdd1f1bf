"""Metrics of the best classes, and rates held at others."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

SCORES = np.array([[0.1, 0.9, 0.3, 0.2], [0.8, 0.1, 0.7, 0.2]], np.float32)
DENSE = np.array([[1, 0], [3, 2]], np.int64)
SPARSE = tf.SparseTensorValue(
    np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), DENSE.reshape(-1), np.array([2, 2])
)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def both(metric):
    """The value after one batch, which must be what the update gave."""
    value, update = metric
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        given = session.run(update)
        np.testing.assert_equal(session.run(value), given)
        return given


@pytest.mark.parametrize("labels", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_precision_and_recall(labels):
    # The two best are classes 1, 2 and 0, 2: one of the labels of each row.
    assert both(tf.metrics.precision_at_k(labels, SCORES, 2)) == 0.5
    assert both(tf.metrics.recall_at_k(labels, SCORES, 2)) == 0.5
    assert both(tf.metrics.recall_at_k(labels, SCORES, 2, class_id=1)) == 1
    assert both(tf.metrics.precision_at_k(labels, SCORES, 2, class_id=0)) == 0
    assert both(tf.metrics.precision_at_k(labels, SCORES, 1, weights=[1.0, 0.0])) == 1
    assert np.isnan(both(tf.metrics.recall_at_k(labels, SCORES, 2, weights=0.0)))


@pytest.mark.parametrize("labels", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_average_precision(labels):
    # Row 0 has its label first (1 of 1), row 1 second (1 of 2); two labels could be right.
    assert both(tf.metrics.average_precision_at_k(labels, SCORES, 2)) == (1 / 2 + 0.5 / 2) / 2
    weighted = tf.metrics.average_precision_at_k(labels, SCORES, 2, weights=[[1.0], [0.0]][0])
    assert both(weighted) == 0.375
    out = tf.metrics.average_precision_at_k(np.where(DENSE == 3, 4, DENSE), SCORES, 2)
    assert both(out) == (1 / 2 + 0.5 / 1) / 2


def test_labels_of_rank_one_and_names():
    metric = tf.metrics.precision_at_k(DENSE[:, 0] % 2, SCORES, 1, metrics_collections="m")
    assert both(metric) == 0.5
    names = [v.op.name for v in tf.local_variables()]
    assert names == ["precision_at_1/true_positive_at_1", "precision_at_1/false_positive_at_1"]
    assert tf.get_collection("m") == [metric[0]]
    assert both(tf.metrics.recall_at_top_k(DENSE[:, :1] % 3, [[1], [2]], k=1)) == 0.5
    with pytest.raises(ValueError, match="Unexpected labels shape"):
        tf.metrics.precision_at_k(DENSE[None], SCORES, 1)
    with pytest.raises(ValueError, match="Invalid k=0"):
        tf.metrics.average_precision_at_k(DENSE, SCORES, 0)


def test_labels_of_unknown_rank():
    labels = tf.placeholder(tf.int64)
    _, update = tf.metrics.recall_at_k(labels, SCORES, 1)
    with tf.Session() as session:
        for given in ([1, 2], [[1], [2]]):
            session.run(tf.local_variables_initializer())
            assert session.run(update, {labels: given}) == 0.5


def test_a_rate_held():
    labels = [0, 0, 0, 0, 1, 1, 1, 1]
    scores = [0.1, 0.2, 0.4, 0.3, 0.0, 0.5, 0.45, 0.9]
    metrics = tf.metrics
    assert both(metrics.sensitivity_at_specificity(labels, scores, 0.7)) == pytest.approx(0.75)
    assert both(metrics.specificity_at_sensitivity(labels, scores, 0.7)) == pytest.approx(1.0)
    for function in (metrics.sensitivity_at_specificity, metrics.specificity_at_sensitivity):
        with pytest.raises(ValueError, match="must be in the range"):
            function(labels, scores, 1.5)
