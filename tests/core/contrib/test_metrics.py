"""`tf.contrib.metrics`: accuracy and F1."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.mapping import resolve

metrics = tf.contrib.metrics


def test_accuracy() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        of_words = metrics.accuracy(tf.constant(["a", "b"]), tf.constant(["a", "c"]))
        weighted = metrics.accuracy([1, 0, 1], [1, 1, 1], weights=[3.0, 1.0, 0.0])
        assert session.run([of_words, weighted]) == [0.5, 0.75]
        with pytest.raises(ValueError, match="Labels should have bool, integer, or string dtype"):
            metrics.accuracy([1.0], [1.0])
        with pytest.raises(ValueError, match="Dtypes of predictions and labels should match"):
            metrics.accuracy([1], [True])


def test_the_best_f1_of_all_batches() -> None:
    labels = np.array([0, 0, 1, 1, 1, 0])
    scores = np.array([0.1, 0.6, 0.35, 0.8, 0.7, 0.2])
    with tf.Graph().as_default(), tf.Session() as session:
        truth, guess = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
        value, update = metrics.f1_score(truth, guess, num_thresholds=101)
        assert {v.op.name for v in tf.local_variables()} == {
            "f1/true_positives", "f1/false_positives", "f1/false_negatives"
        }  # fmt: skip
        session.run(tf.local_variables_initializer())
        assert session.run(value) == 0
        for part in (slice(0, 3), slice(3, 6)):
            session.run(update, {truth: labels[part], guess: scores[part]})
        # Above 0.3: three hits, one false; above 0.65: two hits, one missed.
        assert session.run(value) == pytest.approx(2 * 0.75 / 1.75, rel=1e-5)


def test_confusion_matrix_is_tf_math_s() -> None:
    with tf.Session() as sess:
        found = sess.run(metrics.confusion_matrix([0, 1, 1], [0, 0, 1], num_classes=2))
    assert found.tolist() == [[1, 0], [1, 1]]
    found = resolve.lookup("contrib.metrics.python.ops.confusion_matrix_ops", "confusion_matrix")
    assert found is tf.math.confusion_matrix
