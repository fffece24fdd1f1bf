"""Means over a stream of batches: values, accuracy, errors."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable_scope import variable_scope
from opdock.metrics.common import aligned, collect, metric_variable, safe_div, to_float
from opdock.ops.array import size
from opdock.ops.cast import cast
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.state import assign_add, scatter_add
from opdock.ops.support.nn_util import emit

Metric = tuple[Tensor, Tensor]


def mean(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The weighted mean of all values seen so far.

    Args:
        values: a tensor.
        weights: a tensor that broadcasts against `values`, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The mean so far, and an operation that adds a batch and returns the new mean.

    Raises:
        ValueError: the shape of `weights` does not fit.
    """
    with variable_scope(name, "mean", [values] if weights is None else [values, weights]):
        values = to_float(values)
        total = metric_variable([], dtypes.float32, "total")
        count = metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = to_float(size(values))
        else:
            values, _, weights = aligned(values, None, weights)
            weights = broadcast_weights(to_float(weights), values)
            values = emit("Mul", values, weights)
            number = reduce_sum(weights)
        update_total = assign_add(total, reduce_sum(values))
        with control_dependencies([values]):
            update_count = assign_add(count, number)
        value = safe_div(total, count, "value")
        collect(value, metrics_collections)
        update = safe_div(update_total, update_count, "update_op")
        collect(update, updates_collections)
        return value, update


def mean_tensor(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The weighted mean of each element over all batches seen so far.

    Args:
        values: a tensor of known shape.
        weights: a tensor that broadcasts against `values`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The mean so far, shaped like `values`, and the update operation.

    Raises:
        ValueError: the shape of `weights` does not fit.
    """
    with variable_scope(name, "mean", [values] if weights is None else [values, weights]):
        values = to_float(values)
        shape = values.shape.as_list()
        total = metric_variable(shape, dtypes.float32, "total_tensor")
        count = metric_variable(shape, dtypes.float32, "count_tensor")
        number = ones_like(values)
        if weights is not None:
            values, _, weights = aligned(values, None, weights)
            weights = broadcast_weights(to_float(weights), values)
            values = emit("Mul", values, weights)
            number = emit("Mul", number, weights)
        update_total = assign_add(total, values)
        with control_dependencies([values]):
            update_count = assign_add(count, number)
        value = safe_div(total, count, "value")
        collect(value, metrics_collections)
        update = safe_div(update_total, update_count, "update_op")
        collect(update, updates_collections)
        return value, update


def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """How often predictions equal labels.

    Args:
        labels: a tensor.
        predictions: a tensor of its shape.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The accuracy so far, and an operation that adds a batch and returns the new accuracy.

    Raises:
        ValueError: the shapes do not fit.
    """
    predictions, labels, weights = aligned(predictions, labels, weights)
    if labels.dtype is not predictions.dtype:
        predictions = cast(predictions, labels.dtype)
    correct = to_float(emit("Equal", predictions, labels))
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


def _pair(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    return aligned(to_float(predictions), to_float(labels), weights)


def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of |predictions - labels|.

    Args:
        labels: a tensor.
        predictions: a tensor of its shape.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The error so far, and the update operation.
    """
    predictions, labels, weights = _pair(predictions, labels, weights)
    error = emit("Abs", predictions - labels)
    return mean(
        error, weights, metrics_collections, updates_collections, name or "mean_absolute_error"
    )


def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of (predictions - labels) squared.

    Args:
        labels: a tensor.
        predictions: a tensor of its shape.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The error so far, and the update operation.
    """
    predictions, labels, weights = _pair(predictions, labels, weights)
    error = emit("SquaredDifference", labels, predictions)
    return mean(
        error, weights, metrics_collections, updates_collections, name or "mean_squared_error"
    )


def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The root of the mean of (predictions - labels) squared.

    Args:
        labels: a tensor.
        predictions: a tensor of its shape.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The error so far, and the update operation.
    """
    value, update = mean_squared_error(
        labels, predictions, weights, None, None, name or "root_mean_squared_error"
    )
    root, update_root = emit("Sqrt", value), emit("Sqrt", update)
    collect(root, metrics_collections)
    collect(update_root, updates_collections)
    return root, update_root


def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of |labels - predictions| / normalizer, 0 where the normalizer is 0.

    Args:
        labels: a tensor.
        predictions: a tensor of its shape.
        normalizer: a tensor of its shape.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The error so far, and the update operation.
    """
    predictions, labels, weights = _pair(predictions, labels, weights)
    predictions, normalizer = remove_last(predictions, normalizer)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    error = where(
        emit("Equal", normalizer, 0.0), zeros_like(labels),
        emit("RealDiv", emit("Abs", labels - predictions), normalizer),
    )  # fmt: skip
    return mean(
        error, weights, metrics_collections, updates_collections, name or "mean_relative_error"
    )


def remove_last(predictions: Any, other: Any) -> tuple[Any, Any]:
    """Both without a last dimension of 1 that the other lacks."""
    predictions, other, _ = aligned(predictions, to_float(other), None)
    return predictions, other


def mean_cosine_distance(
    labels: Any, predictions: Any, dim: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of 1 - the dot product of unit vectors.

    Args:
        labels: a tensor of unit vectors.
        predictions: a tensor of its shape.
        dim: the dimension of the vectors.
        weights: a tensor that broadcasts against the products, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The distance so far, and the update operation.
    """
    predictions, labels, weights = _pair(predictions, labels, weights)
    product = reduce_sum(emit("Mul", predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(product, weights, None, None, name or "mean_cosine_distance")
    distance, update_distance = emit("Sub", 1.0, value), emit("Sub", 1.0, update)
    collect(distance, metrics_collections)
    collect(update_distance, updates_collections)
    return distance, update_distance


def percentage_below(
    values: Any, threshold: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the values below a threshold.

    Args:
        values: a tensor.
        threshold: a number.
        weights: a tensor that broadcasts against `values`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The part so far, between 0 and 1, and the update operation.
    """
    below = to_float(emit("Less", convert_to_tensor(values), threshold))
    return mean(
        below, weights, metrics_collections, updates_collections,
        name or "percentage_below_threshold",
    )  # fmt: skip


def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over classes of the accuracy on each.

    Args:
        labels: class indices, int32 or int64.
        predictions: a tensor of its shape.
        num_classes: the number of classes.
        weights: a tensor that broadcasts against `labels`, or None.
        metrics_collections, updates_collections, name: as for `mean`.

    Returns:
        The mean accuracy so far, and an operation that adds a batch and returns the accuracies.
    """
    with variable_scope(name, "mean_accuracy", [predictions, labels]):
        labels = cast(labels, dtypes.int64)
        if labels.shape.ndims is not None and labels.shape.ndims > 1:
            labels = emit("Reshape", labels, [-1])
        predictions = convert_to_tensor(predictions)
        if predictions.shape.ndims is not None and predictions.shape.ndims > 1:
            predictions = emit("Reshape", predictions, [-1])
        predictions.shape.assert_is_compatible_with(labels.shape)
        total = metric_variable([num_classes], dtypes.float32, "total")
        count = metric_variable([num_classes], dtypes.float32, "count")
        ones: Any = ones_like(labels, dtype=dtypes.float32)
        correct = to_float(emit("Equal", cast(predictions, labels.dtype), labels))
        if weights is not None:
            weights = to_float(weights)
            if weights.shape.ndims is not None and weights.shape.ndims > 1:
                weights = emit("Reshape", weights, [-1])
            ones, correct = ones * weights, correct * weights
        update_total = scatter_add(total, labels, ones)
        update_count = scatter_add(count, labels, correct)
        value = emit("Mean", safe_div(count, total), [0], name="mean_accuracy")
        collect(value, metrics_collections)
        update = safe_div(update_count, update_total, "update_op")
        collect(update, updates_collections)
        return value, update
