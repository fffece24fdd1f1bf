"""Counts of right and wrong positives and negatives; precision and recall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.metrics.common import (
    WORDS,
    Metric,
    across,
    aligned,
    collected,
    metric_variable,
    scope,
    to_float,
)
from opdock.ops.cast import cast
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.state import assign_add
from opdock.ops.support.nn_util import emit

_WORDS = {
    **WORDS,
    "labels": "a tensor, taken as bool.",
    "predictions": "a tensor of its shape, taken as bool.",
    "returns": (
        "The weighted count so far, and an operation that adds a batch and returns the new count."
    ),
    "raises": "ValueError: the shapes do not fit.",
}


def _count(values: Any, weights: Any) -> Metric:
    count = metric_variable([], dtypes.float32, "count")
    values = to_float(values)
    if weights is not None:
        values, _, weights = aligned(values, None, to_float(weights))
        values = emit("Mul", values, broadcast_weights(weights, values))
    return across(count.value), assign_add(count, reduce_sum(values))


def _counted(
    title: str, label: bool, prediction: bool, labels: Any, predictions: Any, weights: Any,
    metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    with scope(name, title, predictions, labels, weights):
        predictions, labels, weights = aligned(
            cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights
        )
        value, update = _count(
            emit(
                "LogicalAnd", emit("Equal", labels, label), emit("Equal", predictions, prediction)
            ),
            weights,
        )
        return collected(value, update, metrics_collections, updates_collections)


@explained(_WORDS)
def true_positives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted true and labelled true."""
    return _counted("true_positives", True, True, **locals())


@explained(_WORDS)
def false_positives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted true and labelled false."""
    return _counted("false_positives", False, True, **locals())


@explained(_WORDS)
def true_negatives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted false and labelled false."""
    return _counted("true_negatives", False, False, **locals())


@explained(_WORDS)
def false_negatives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted false and labelled true."""
    return _counted("false_negatives", True, False, **locals())


@explained(
    _WORDS,
    returns=(
        "The precision so far, and an operation that adds a batch and returns the new "
        "precision."
    ),
)  # fmt: skip
def precision(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part true among those predicted true; 0 when there are none."""
    return _part("precision", false_positives, **locals())


@explained(
    _WORDS,
    returns="The recall so far, and an operation that adds a batch and returns the new recall.",
)  # fmt: skip
def recall(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part predicted true among those that are; 0 when there are none."""
    return _part("recall", false_negatives, **locals())


def _part(
    title: str, other: Callable[..., Metric], labels: Any, predictions: Any, weights: Any,
    metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    """The true positives among them and the `other` ones; 0 when there are none."""
    with scope(name, title, predictions, labels, weights):
        predictions, labels, weights = aligned(
            cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights
        )
        right, add_right = true_positives(labels, predictions, weights)
        wrong, add_wrong = other(labels, predictions, weights)
        value = across(lambda: _share(right, wrong, "value"))
        update = _share(add_right, add_wrong, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def _share(right: Any, wrong: Any, name: str) -> Any:
    both = right + wrong
    return where(emit("Greater", both, 0.0), emit("RealDiv", right, both), 0.0, name=name)
