"""Means over a stream of batches: values, accuracy, errors."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.metrics.common import (
    WORDS,
    Metric,
    across,
    aligned,
    collected,
    metric_variable,
    safe_div,
    scope,
    to_float,
)
from opdock.ops.array import size
from opdock.ops.cast import cast
from opdock.ops.composed.variable_scatter import scatter_add
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.state import assign_add
from opdock.ops.support.nn_util import emit


@explained(
    WORDS, values="a tensor.", weights="a tensor that broadcasts against `values`, or None.",
    returns="The mean so far, and an operation that adds a batch and returns the new mean.",
    raises="ValueError: the shape of `weights` does not fit.",
)  # fmt: skip
def mean(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The weighted mean of all values seen so far."""
    with scope(name, "mean", values, weights):
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
        value = across(lambda: safe_div(total, count, "value"))
        update = safe_div(update_total, update_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@explained(
    WORDS, values="a tensor of known shape.",
    weights="a tensor that broadcasts against `values`, or None.",
    returns="The mean so far, shaped like `values`, and the update operation.",
    raises="ValueError: the shape of `weights` does not fit.",
)  # fmt: skip
def mean_tensor(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The weighted mean of each element over all batches seen so far."""
    with scope(name, "mean", values, weights):
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
        value = across(lambda: safe_div(total, count, "value"))
        update = safe_div(update_total, update_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@explained(
    WORDS,
    returns=(
        "The accuracy so far, and an operation that adds a batch and returns the new "
        "accuracy."
    ),
    raises="ValueError: the shapes do not fit.",
)  # fmt: skip
def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """How often predictions equal labels."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    if labels.dtype is not predictions.dtype:
        predictions = cast(predictions, labels.dtype)
    correct = to_float(emit("Equal", predictions, labels))
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


def _pair(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    return aligned(to_float(predictions), to_float(labels), weights)


@explained(WORDS, returns="The error so far, and the update operation.")
def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of |predictions - labels|."""
    predictions, labels, weights = _pair(predictions, labels, weights)
    error = emit("Abs", predictions - labels)
    return mean(
        error, weights, metrics_collections, updates_collections, name or "mean_absolute_error"
    )


@explained(WORDS, returns="The error so far, and the update operation.")
def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of (predictions - labels) squared."""
    predictions, labels, weights = _pair(predictions, labels, weights)
    error = emit("SquaredDifference", labels, predictions)
    return mean(
        error, weights, metrics_collections, updates_collections, name or "mean_squared_error"
    )


@explained(WORDS, returns="The error so far, and the update operation.")
def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The root of the mean of (predictions - labels) squared."""
    value, update = mean_squared_error(
        labels, predictions, weights, None, None, name or "root_mean_squared_error"
    )
    root, update_root = across(lambda: emit("Sqrt", value)), emit("Sqrt", update)
    return collected(root, update_root, metrics_collections, updates_collections)


@explained(
    WORDS, normalizer="a tensor of its shape.",
    returns="The error so far, and the update operation.",
)  # fmt: skip
def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of |labels - predictions| / normalizer, 0 where the normalizer is 0."""
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


@explained(
    WORDS, labels="a tensor of unit vectors.", dim="the dimension of the vectors.",
    weights="a tensor that broadcasts against the products, or None.",
    returns="The distance so far, and the update operation.",
)  # fmt: skip
def mean_cosine_distance(
    labels: Any, predictions: Any, dim: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean of 1 - the dot product of unit vectors."""
    predictions, labels, weights = _pair(predictions, labels, weights)
    product = reduce_sum(emit("Mul", predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(product, weights, None, None, name or "mean_cosine_distance")
    distance = across(lambda: emit("Sub", 1.0, value))
    update_distance = emit("Sub", 1.0, update)
    return collected(distance, update_distance, metrics_collections, updates_collections)


@explained(
    WORDS, values="a tensor.", threshold="a number.",
    weights="a tensor that broadcasts against `values`, or None.",
    returns="The part so far, between 0 and 1, and the update operation.",
)  # fmt: skip
def percentage_below(
    values: Any, threshold: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the values below a threshold."""
    below = to_float(emit("Less", convert_to_tensor(values), threshold))
    return mean(
        below, weights, metrics_collections, updates_collections,
        name or "percentage_below_threshold",
    )  # fmt: skip


@explained(
    WORDS, labels="class indices, int32 or int64.", num_classes="the number of classes.",
    returns=(
        "The mean accuracy so far, and an operation that adds a batch and returns the "
        "accuracies."
    ),
)  # fmt: skip
def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over classes of the accuracy on each."""
    with scope(name, "mean_accuracy", predictions, labels):
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
        value = across(lambda: emit("Mean", safe_div(count, total), [0], name="mean_accuracy"))
        update = safe_div(update_count, update_total, "update_op")
        return collected(value, update, metrics_collections, updates_collections)
