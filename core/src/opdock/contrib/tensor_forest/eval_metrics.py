"""Metrics of forests by name, for estimators' `eval_metrics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import opdock as tf
from opdock.contrib.learn.keys import PredictionKey

__all__ = ["accuracy", "get_metric", "get_prediction_key", "top_k"]

INFERENCE_PROB_NAME: Final = PredictionKey.PROBABILITIES
INFERENCE_PRED_NAME: Final = PredictionKey.CLASSES
FEATURE_IMPORTANCE_NAME: Final = "global_feature_importance"
_THRESHOLDS: Final = np.arange(0, 1, 0.01, dtype=np.float32)


def _column(targets: Any) -> Any:
    """Classes as a vector of int32."""
    targets = tf.cast(targets, tf.int32)
    return tf.squeeze(targets, axis=[1]) if targets.shape.ndims > 1 else targets


def top_k(k: int) -> Callable[..., Any]:
    """A metric: how often the class is one of the k most probable ones."""

    def compute(probabilities: Any, targets: Any) -> Any:
        hits = tf.nn.in_top_k(probabilities, _column(targets), k)
        return tf.metrics.mean(tf.cast(hits, tf.float32))

    return compute


def _r2(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    targets = tf.cast(targets, tf.float32)
    total = tf.reduce_sum(tf.squared_difference(targets, tf.reduce_mean(targets, 0)), 0)
    residuals = tf.reduce_sum(tf.squared_difference(targets, probabilities), 0)
    return tf.metrics.mean(1 - tf.reduce_sum(residuals / total), weights=weights)


def _one_hot(probabilities: Any, targets: Any) -> Any:
    return tf.one_hot(_column(targets), tf.shape(probabilities)[1])


def _sigmoid_entropy(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    loss = tf.losses.sigmoid_cross_entropy(_one_hot(probabilities, targets), probabilities)
    return tf.metrics.mean(loss, weights=weights)


def _softmax_entropy(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    loss = tf.losses.sparse_softmax_cross_entropy(_column(targets), probabilities)
    return tf.metrics.mean(loss, weights=weights)


def _log_loss(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    loss = tf.losses.log_loss(_one_hot(probabilities, targets), probabilities)
    return tf.metrics.mean(loss, weights=weights)


def _predictions(predictions: Any, unused_targets: Any, **unused_kwargs: Any) -> Any:
    return predictions


def _of_classes(metric: str) -> Callable[..., Any]:
    def compute(predictions: Any, targets: Any, weights: Any = None) -> Any:
        return getattr(tf.metrics, metric)(targets, predictions, weights=weights)

    return compute


accuracy: Final = _of_classes("accuracy")


def _of_second_class(metric: str, **given: Any) -> Callable[..., Any]:
    """A metric of the probability of the second of two classes."""

    def compute(predictions: Any, targets: Any, weights: Any = None) -> Any:
        second = predictions[:, 1:2]
        return getattr(tf.metrics, metric)(targets, second, weights=weights, **given)

    return compute


_METRICS: Final[dict[str, tuple[Callable[..., Any], str]]] = {
    "auc": (_of_second_class("auc"), INFERENCE_PROB_NAME),
    "sigmoid_entropy": (_sigmoid_entropy, INFERENCE_PROB_NAME),
    "softmax_entropy": (_softmax_entropy, INFERENCE_PROB_NAME),
    "accuracy": (accuracy, INFERENCE_PRED_NAME),
    "r2": (_r2, PredictionKey.SCORES),
    "predictions": (_predictions, INFERENCE_PRED_NAME),
    "classification_log_loss": (_log_loss, INFERENCE_PROB_NAME),
    "precision": (_of_classes("precision"), INFERENCE_PRED_NAME),
    "precision_at_thresholds": (
        _of_second_class("precision_at_thresholds", thresholds=_THRESHOLDS),
        INFERENCE_PROB_NAME,
    ),
    "recall": (_of_classes("recall"), INFERENCE_PRED_NAME),
    "recall_at_thresholds": (
        _of_second_class("recall_at_thresholds", thresholds=_THRESHOLDS),
        INFERENCE_PROB_NAME,
    ),
    "top_5": (top_k(5), INFERENCE_PROB_NAME),
}


def get_metric(metric_name: str) -> Callable[..., Any]:
    """The function of predictions and targets that a name stands for; KeyError without one."""
    return _METRICS[metric_name][0]


def get_prediction_key(metric_name: str) -> str:
    """The key of the predictions that it is given."""
    return _METRICS[metric_name][1]
