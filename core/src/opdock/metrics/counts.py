"""Counts of right and wrong positives and negatives; precision and recall."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable_scope import variable_scope
from opdock.metrics.common import aligned, collect, metric_variable, to_float
from opdock.ops.cast import cast
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.state import assign_add
from opdock.ops.support.nn_util import emit

Metric = tuple[Tensor, Tensor]


def _count(values: Any, weights: Any) -> Metric:
    count = metric_variable([], dtypes.float32, "count")
    values = to_float(values)
    if weights is not None:
        values, _, weights = aligned(values, None, to_float(weights))
        values = emit("Mul", values, broadcast_weights(weights, values))
    return count.value(), assign_add(count, reduce_sum(values))


def _counted(
    title: str, label: bool, prediction: bool, labels: Any, predictions: Any, weights: Any,
    metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    given = [v for v in (predictions, labels, weights) if v is not None]
    with variable_scope(name, title, given):
        predictions, labels, weights = aligned(
            cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights
        )
        value, update = _count(
            emit(
                "LogicalAnd", emit("Equal", labels, label), emit("Equal", predictions, prediction)
            ),
            weights,
        )
        collect(value, metrics_collections)
        collect(update, updates_collections)
        return value, update


def true_positives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted true and labelled true.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape, taken as bool.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The weighted count so far, and an operation that adds a batch and returns the new count.

    Raises:
        ValueError: the shapes do not fit.
    """
    return _counted(
        "true_positives", True, True, labels, predictions, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


def false_positives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted true and labelled false.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape, taken as bool.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The weighted count so far, and an operation that adds a batch and returns the new count.

    Raises:
        ValueError: the shapes do not fit.
    """
    return _counted(
        "false_positives", False, True, labels, predictions, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


def true_negatives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted false and labelled false.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape, taken as bool.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The weighted count so far, and an operation that adds a batch and returns the new count.

    Raises:
        ValueError: the shapes do not fit.
    """
    return _counted(
        "true_negatives", False, False, labels, predictions, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


def false_negatives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of examples predicted false and labelled true.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape, taken as bool.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The weighted count so far, and an operation that adds a batch and returns the new count.

    Raises:
        ValueError: the shapes do not fit.
    """
    return _counted(
        "false_negatives", True, False, labels, predictions, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


def precision(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part true among those predicted true; 0 when there are none.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape, taken as bool.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The precision so far, and an operation that adds a batch and returns the new precision.

    Raises:
        ValueError: the shapes do not fit.
    """
    given = [v for v in (predictions, labels, weights) if v is not None]
    with variable_scope(name, "precision", given):
        predictions, labels, weights = aligned(
            cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights
        )
        right, add_right = true_positives(labels, predictions, weights)
        wrong, add_wrong = false_positives(labels, predictions, weights)
        value = _part(right, wrong, "value")
        update = _part(add_right, add_wrong, "update_op")
        collect(value, metrics_collections)
        collect(update, updates_collections)
        return value, update


def recall(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part predicted true among those that are; 0 when there are none.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape, taken as bool.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The recall so far, and an operation that adds a batch and returns the new recall.

    Raises:
        ValueError: the shapes do not fit.
    """
    given = [v for v in (predictions, labels, weights) if v is not None]
    with variable_scope(name, "recall", given):
        predictions, labels, weights = aligned(
            cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights
        )
        right, add_right = true_positives(labels, predictions, weights)
        wrong, add_wrong = false_negatives(labels, predictions, weights)
        value = _part(right, wrong, "value")
        update = _part(add_right, add_wrong, "update_op")
        collect(value, metrics_collections)
        collect(update, updates_collections)
        return value, update


def _part(right: Any, wrong: Any, name: str) -> Any:
    both = right + wrong
    return where(emit("Greater", both, 0.0), emit("RealDiv", right, both), 0.0, name=name)
