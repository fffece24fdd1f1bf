"""A model that predicts how likely something is, with the metrics of such models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import opdock as tf
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.keys import MetricKey, ProblemType
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps

__all__ = ["LogisticRegressor"]


def LogisticRegressor(
    model_fn: Callable[..., Any], thresholds: Sequence[float] | None = None,
    model_dir: str | None = None, config: Any = None, feature_engineering_fn: Any = None,
) -> Estimator:  # fmt: skip
    """An estimator of a model of probabilities, which is evaluated by the metrics of such.

    Args:
        model_fn: a function of features, labels and mode, that returns (predictions, loss,
            train_op).
        thresholds: above which probabilities something is taken for true, in turn; 0.5 if None.
        model_dir, config, feature_engineering_fn: as of `Estimator`.
    """

    def with_metrics(features: Any, labels: Any, mode: str) -> ModelFnOps:
        predictions, loss, train_op = model_fn(features, labels, mode)
        measured = None
        if mode == ModeKeys.EVAL:
            measured = _metrics(labels, predictions, thresholds or [0.5])
        heads = {"head": (ProblemType.LOGISTIC_REGRESSION, {"predictions": predictions})}
        return ModelFnOps(mode, predictions, loss, train_op, measured, heads)

    return Estimator(
        model_fn=with_metrics, model_dir=model_dir, config=config,
        feature_engineering_fn=feature_engineering_fn,
    )  # fmt: skip


def _metrics(labels: Any, predictions: Any, thresholds: Sequence[float]) -> dict[str, Any]:
    if isinstance(labels, Mapping) and len(labels) == 1:
        (labels,) = labels.values()
    found = {
        MetricKey.PREDICTION_MEAN: tf.metrics.mean(predictions),
        MetricKey.LABEL_MEAN: tf.metrics.mean(labels),
        # Whoever always predicts the mean label is right as often as that.
        MetricKey.ACCURACY_BASELINE: tf.metrics.mean(labels),
        MetricKey.AUC: tf.metrics.auc(labels, predictions),
    }
    for threshold in thresholds:
        name = f"predictions_at_threshold_{threshold:f}"
        taken = tf.cast(tf.greater_equal(predictions, threshold), tf.float32, name=name)
        found[MetricKey.ACCURACY_MEAN % threshold] = tf.metrics.accuracy(labels, taken)
        found[MetricKey.PRECISION_MEAN % threshold] = tf.metrics.precision(labels, taken)
        found[MetricKey.RECALL_MEAN % threshold] = tf.metrics.recall(labels, taken)
    return found
