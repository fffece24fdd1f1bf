"""The head of a support vector machine: one logit, whose sign is the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import opdock as tf
from opdock.contrib.learn.head import Head, SingleHead, weighted
from opdock.contrib.learn.keys import MetricKey, PredictionKey, ProblemType

__all__ = ["binary_svm_head"]


class _BinarySvmHead(SingleHead):
    """Two classes by one logit, whose loss is what it lacks of a margin of 1."""

    problem_type = ProblemType.LOGISTIC_REGRESSION
    default_scope = "binary_svm_head"
    sdca_loss = "hinge_loss"

    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        losses = tf.losses.hinge_loss(
            labels=tf.reshape(labels, [-1, 1]), logits=logits, reduction=tf.losses.Reduction.NONE
        )
        return weighted(losses, weights)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        both = tf.concat((tf.zeros_like(logits), logits), 1)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.CLASSES: tf.argmax(both, 1, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: Any, labels: Any, weights: Any) -> dict[str, Any]:
        classes = tf.expand_dims(predictions[PredictionKey.CLASSES], 1)
        return {MetricKey.ACCURACY: tf.metrics.accuracy(labels, classes, weights)}


def binary_svm_head(
    label_name: str | None = None, weight_column_name: str | None = None,
    enable_centered_bias: bool = False, head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
) -> Head:  # fmt: skip
    """A head of two classes by the hinge loss; its arguments are `multi_class_head`'s.

    `thresholds` is taken and has no part in it: there are no probabilities.
    """
    del thresholds
    return _BinarySvmHead(1, label_name, weight_column_name, enable_centered_bias, head_name)
