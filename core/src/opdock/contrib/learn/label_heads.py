"""The head of `tf.contrib.learn` for examples that may have several classes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import opdock as tf
from opdock.contrib.learn.head import ClassHead, Head
from opdock.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from opdock.ops.composed.weights_broadcast import broadcast_weights

__all__ = ["multi_label_head"]


class _MultiLabelHead(ClassHead):
    """Any number of classes for an example, by a logit each."""

    problem_type = ProblemType.CLASSIFICATION
    default_scope = "multi_label_head"

    def __init__(self, metric_class_ids: Sequence[int], *settings: Any) -> None:
        super().__init__(*settings)
        self._metric_class_ids = metric_class_ids

    def _dense(self, labels: Any) -> Any:
        return tf.cast(tf.sparse_to_indicator(labels, self.logits_dimension), tf.int64)

    def _losses(self, labels: Any, logits: Any) -> Any:
        return tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(labels, tf.float32), logits=logits
        )

    def _predictions(self, logits: Any) -> dict[str, Any]:
        classes = tf.cast(tf.greater(logits, 0), tf.int64, name=PredictionKey.CLASSES)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: tf.sigmoid(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: classes,
        }

    def _metrics(self, predictions: Any, labels: Any, weights: Any) -> dict[str, Any]:
        classes = predictions[PredictionKey.CLASSES]
        chances = predictions[PredictionKey.PROBABILITIES]
        is_label = tf.cast(labels, tf.bool)
        if weights is not None:
            weights = broadcast_weights(weights, chances)
        found: dict[str, Any] = {
            MetricKey.ACCURACY: tf.metrics.accuracy(labels, classes, weights),
            MetricKey.AUC: tf.metrics.auc(is_label, chances, weights),
            MetricKey.AUC_PR: tf.metrics.auc(is_label, chances, weights, curve="PR"),
        }
        means = {
            MetricKey.CLASS_PREDICTION_MEAN: classes,
            MetricKey.CLASS_LABEL_MEAN: labels,
            MetricKey.CLASS_PROBABILITY_MEAN: chances,
            MetricKey.CLASS_LOGITS_MEAN: predictions[PredictionKey.LOGITS],
        }
        for i in self._metric_class_ids:
            mine = None if weights is None else weights[:, i]
            for key, values in means.items():
                found[key % i] = tf.metrics.mean(tf.cast(values, tf.float32)[:, i], mine)
            known = is_label[:, i], chances[:, i], mine
            found[MetricKey.CLASS_AUC % i] = tf.metrics.auc(*known)
            found[MetricKey.CLASS_AUC_PR % i] = tf.metrics.auc(*known, curve="PR")
        return found


def multi_label_head(
    n_classes: int, label_name: str | None = None, weight_column_name: str | None = None,
    enable_centered_bias: bool = False, head_name: str | None = None,
    thresholds: Sequence[float] | None = None, metric_class_ids: Sequence[int] | None = None,
    loss_fn: Callable[..., Any] | None = None,
) -> Head:  # fmt: skip
    """A head of classes of which an example may have several.

    Labels are [examples, classes], or a `SparseTensor` of the classes that each example has.

    Args:
        n_classes, label_name, weight_column_name, enable_centered_bias, head_name, thresholds,
            metric_class_ids, loss_fn: see `multi_class_head`.

    Raises:
        ValueError: fewer than two classes, or a metric of a class that is none.
    """
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    ids = tuple(metric_class_ids or ())
    if any(not 0 <= i < n_classes for i in ids):
        raise ValueError(f"metric_class_ids ({metric_class_ids}) not in [0, {n_classes})")
    return _MultiLabelHead(
        ids, loss_fn, thresholds, n_classes, label_name, weight_column_name, enable_centered_bias,
        head_name,
    )  # fmt: skip
