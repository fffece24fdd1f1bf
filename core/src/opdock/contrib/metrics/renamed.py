"""The metrics of `tf.metrics` under the names that they had before, predictions before labels."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from opdock import metrics

__all__ = [
    "streaming_accuracy", "streaming_auc", "streaming_false_negatives",
    "streaming_false_positives", "streaming_mean", "streaming_mean_absolute_error",
    "streaming_mean_iou", "streaming_mean_relative_error", "streaming_mean_squared_error",
    "streaming_mean_tensor", "streaming_percentage_less", "streaming_precision",
    "streaming_precision_at_thresholds", "streaming_recall", "streaming_recall_at_thresholds",
    "streaming_root_mean_squared_error", "streaming_sensitivity_at_specificity",
    "streaming_sparse_average_precision_at_k", "streaming_sparse_precision_at_k",
    "streaming_sparse_recall_at_k", "streaming_specificity_at_sensitivity",
    "streaming_true_negatives", "streaming_true_positives",
]  # fmt: skip

_PAIR = "predictions labels"
_LAST = "weights metrics_collections updates_collections name"


def _in_order(name: str, metric: Callable[..., Any], *arguments: str) -> Callable[..., Any]:
    """A metric by another name, that takes its arguments in this order."""
    own = inspect.signature(metric).parameters
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [own[argument].replace(kind=either) for part in arguments for argument in part.split()]
    )

    def streaming(*args: Any, **kwargs: Any) -> Any:
        return metric(**signature.bind(*args, **kwargs).arguments)

    functools.update_wrapper(streaming, metric, ("__module__", "__doc__"))
    del streaming.__wrapped__  # type: ignore[attr-defined]
    streaming.__name__ = streaming.__qualname__ = name
    streaming.__signature__ = signature  # type: ignore[attr-defined]
    return streaming


def _pair(name: str, metric: Callable[..., Any], more: str = "") -> Callable[..., Any]:
    return _in_order(name, metric, _PAIR, more, _LAST)


streaming_accuracy = _pair("streaming_accuracy", metrics.accuracy)
streaming_auc = _in_order(
    "streaming_auc", metrics.auc, _PAIR,
    "weights num_thresholds metrics_collections updates_collections curve name",
)  # fmt: skip
streaming_false_negatives = _pair("streaming_false_negatives", metrics.false_negatives)
streaming_false_positives = _pair("streaming_false_positives", metrics.false_positives)
streaming_mean = _in_order("streaming_mean", metrics.mean, "values", _LAST)
streaming_mean_absolute_error = _pair("streaming_mean_absolute_error", metrics.mean_absolute_error)
streaming_mean_iou = _pair("streaming_mean_iou", metrics.mean_iou, "num_classes")
streaming_mean_relative_error = _pair(
    "streaming_mean_relative_error", metrics.mean_relative_error, "normalizer"
)
streaming_mean_squared_error = _pair("streaming_mean_squared_error", metrics.mean_squared_error)
streaming_mean_tensor = _in_order("streaming_mean_tensor", metrics.mean_tensor, "values", _LAST)
streaming_percentage_less = _in_order(
    "streaming_percentage_less", metrics.percentage_below, "values threshold", _LAST
)
streaming_precision = _pair("streaming_precision", metrics.precision)
streaming_precision_at_thresholds = _pair(
    "streaming_precision_at_thresholds", metrics.precision_at_thresholds, "thresholds"
)
streaming_recall = _pair("streaming_recall", metrics.recall)
streaming_recall_at_thresholds = _pair(
    "streaming_recall_at_thresholds", metrics.recall_at_thresholds, "thresholds"
)
streaming_root_mean_squared_error = _pair(
    "streaming_root_mean_squared_error", metrics.root_mean_squared_error
)
streaming_sensitivity_at_specificity = _in_order(
    "streaming_sensitivity_at_specificity", metrics.sensitivity_at_specificity, _PAIR,
    "specificity weights num_thresholds metrics_collections updates_collections name",
)  # fmt: skip
streaming_sparse_average_precision_at_k = _pair(
    "streaming_sparse_average_precision_at_k", metrics.average_precision_at_k, "k"
)
streaming_sparse_precision_at_k = _pair(
    "streaming_sparse_precision_at_k", metrics.precision_at_k, "k class_id"
)
streaming_sparse_recall_at_k = _pair(
    "streaming_sparse_recall_at_k", metrics.recall_at_k, "k class_id"
)
streaming_specificity_at_sensitivity = _in_order(
    "streaming_specificity_at_sensitivity", metrics.specificity_at_sensitivity, _PAIR,
    "sensitivity weights num_thresholds metrics_collections updates_collections name",
)  # fmt: skip
streaming_true_negatives = _pair("streaming_true_negatives", metrics.true_negatives)
streaming_true_positives = _pair("streaming_true_positives", metrics.true_positives)
