"""Metrics of the best `k` classes of each example: precision, recall and average precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.metrics.common import WORDS, Metric, across, collected, metric_variable, safe_div
from opdock.metrics.label_sets import (
    clean_out_of_range,
    expand_labels,
    select_class,
    sparse_or_dense,
    tile_per_k,
)
from opdock.ops.array import expand_dims, shape, size
from opdock.ops.cast import cast
from opdock.ops.composed.weights_broadcast import assert_broadcastable, broadcast_weights
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.reduce import reduce_sum
from opdock.ops.scan import cumsum
from opdock.ops.select import where_v2
from opdock.ops.set_operations import set_difference, set_intersection, set_size
from opdock.ops.sorting import top_k
from opdock.ops.state import assign_add
from opdock.ops.support.nn_util import emit

_WORDS = {
    **WORDS,
    "labels": "int64, a tensor or SparseTensor of shape [D1, ... DN, labels] or [D1, ... DN].",
    "predictions": "scores of shape [D1, ... DN, classes].",
    "predictions_idx": "the indices of the best classes, of shape [D1, ... DN, k].",
    "k": "how many classes count as predicted.",
    "class_id": "look at this class only.",
    "weights": "a number, or a tensor that broadcasts against [D1, ... DN], or None.",
    "returns": "The value so far, and an operation that adds a batch and returns the new value.",
    "raises": "ValueError: the shapes do not fit.",
}


def _title(name: str, k: int | None, class_id: int | None = None) -> str:
    title = f"{name}_at_k" if k is None else f"{name}_at_{k:d}"
    return title if class_id is None else f"{title}_class{class_id:d}"


# ---------------------------------------------------------------- counts
_SETS: dict[str, Callable[[Any, Any], SparseTensor]] = {
    "true_positive": set_intersection,
    "false_positive": lambda predicted, labels: set_difference(predicted, labels, aminusb=True),
    "false_negative": lambda predicted, labels: set_difference(predicted, labels, aminusb=False),
}
"""Which of the predicted classes and the labels count."""


def _counts(
    kind: str, labels: Any, predicted: Any, class_id: int | None = None, weights: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The weighted count of each example."""
    with name_scope(name, kind + "s", [predicted, labels, weights]):
        if class_id is not None:
            labels, predicted = select_class(labels, class_id), select_class(predicted, class_id)
        count = cast(set_size(_SETS[kind](predicted, labels)), dtypes.float64)
        if weights is None:
            return count
        with control_dependencies([assert_broadcastable(weights, count)]):
            return emit("Mul", count, cast(weights, dtypes.float64))


def _streaming(
    kind: str, labels: Any, predicted: Any, k: int | None, class_id: int | None, weights: Any
) -> tuple[Any, Any]:
    """A variable with the count so far, and its update."""
    with name_scope(None, _title(kind, k, class_id), [predicted, labels, weights]) as scope:
        total = reduce_sum(_counts(kind, labels, predicted, class_id, weights))
        held = metric_variable([], dtypes.float64, name=scope)
        return held, assign_add(held, cast(total, dtypes.float64), name="update")


def _share(
    title: str, other: str, labels: Any, predictions_idx: Any, k: int | None,
    class_id: int | None, weights: Any, metrics_collections: Any, updates_collections: Any,
    name: str | None,
) -> Metric:  # fmt: skip
    """True positives among them and the `other` ones."""
    with name_scope(name, _title(title, k, class_id), [predictions_idx, labels, weights]) as scope:
        labels = expand_labels(labels, predictions_idx)
        predicted = cast(predictions_idx, dtypes.int64)
        right, add_right = _streaming("true_positive", labels, predicted, k, class_id, weights)
        wrong, add_wrong = _streaming(other, labels, predicted, k, class_id, weights)
        value = across(lambda: emit("RealDiv", right, emit("Add", right, wrong), name=scope))
        update = emit("RealDiv", add_right, emit("Add", add_right, add_wrong), name="update")
        return collected(value, update, metrics_collections, updates_collections)


def _of_scores(
    title: str, of_indices: Callable[..., Metric], labels: Any, predictions: Any, k: int,
    class_id: int | None, weights: Any, metrics_collections: Any, updates_collections: Any,
    name: str | None,
) -> Metric:  # fmt: skip
    with name_scope(name, _title(title, k, class_id), [predictions, labels, weights]) as scope:
        _, best = top_k(predictions, k)
        return of_indices(
            labels, best, k, class_id, weights, metrics_collections, updates_collections, scope
        )


@explained(_WORDS)
def precision_at_top_k(
    labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None,
    weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the predicted classes that are labels; the best classes are given."""
    return _share("precision", "false_positive", **locals())


@explained(_WORDS)
def precision_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the `k` classes of the highest scores that are labels."""
    return _of_scores("precision", precision_at_top_k, **locals())


@explained(_WORDS)
def sparse_precision_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The deprecated name of `precision_at_k`."""
    return precision_at_k(**locals())


@explained(_WORDS)
def recall_at_top_k(
    labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None,
    weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the labels that are predicted; the best classes are given."""
    return _share("recall", "false_negative", **locals())


@explained(_WORDS)
def recall_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the labels that are among the `k` classes of the highest scores."""
    return _of_scores("recall", recall_at_top_k, **locals())


# ---------------------------------------------------------------- average precision
def _relevant(labels: Any, k: int) -> Any:
    """How many labels an example can at most have right among `k`."""
    with name_scope(None, "num_relevant", [labels]) as scope:
        labels = sparse_or_dense(labels)
        if isinstance(labels, SparseTensor):
            return emit("Minimum", set_size(labels), k, name=scope)
        valid = where_v2(emit("GreaterEqual", labels, 0), ones_like(labels), zeros_like(labels))
        return emit("Minimum", reduce_sum(valid, axis=-1), k, name=scope)


def _average_precision(labels: Any, predictions_idx: Any) -> Any:
    """The average precision of each example: precision at each `k` where a label turns up."""
    with name_scope(None, "average_precision", [predictions_idx, labels]) as scope:
        predicted = cast(predictions_idx, dtypes.int64, name="predictions_idx")
        dims = predicted.shape.dims
        if dims is not None and not dims:
            raise ValueError("The rank of predictions_idx must be at least 1.")
        k = None if dims is None else dims[-1].value
        if k is None:
            raise ValueError("The last dimension of predictions_idx must be set.")
        labels = expand_labels(labels, predicted)
        single = expand_dims(predicted, -1, name="predictions_idx_per_k")
        tiled = tile_per_k(labels, k, name="labels_per_k")
        relevant = _counts("true_positive", tiled, single, name="relevant_per_k")
        right = cumsum(relevant, axis=-1, name="tp_per_k")
        retrieved = cumsum(ones_like(relevant), axis=-1, name="retrieved_per_k")
        precision = emit("RealDiv", right, retrieved, name="precision_per_k")
        counted = emit("Mul", precision, relevant, name="relevant_precision_per_k")
        total = reduce_sum(counted, axis=(-1,), name="precision_sum")
        return emit("RealDiv", total, cast(_relevant(labels, k), dtypes.float64), name=scope)


@explained(_WORDS)
def average_precision_at_k(
    labels: Any, predictions: Any, k: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over examples of the average precision among the `k` best classes."""
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    with name_scope(name, _title("average_precision", k), [predictions, labels, weights]) as scope:
        _, best = top_k(predictions, k)
        classes = cast(shape(predictions)[-1], dtypes.int64)
        labels = clean_out_of_range(labels, classes)
        return average_precision_at_top_k(
            labels, best, weights, metrics_collections, updates_collections, scope
        )


def average_precision_at_top_k(
    labels: Any, predictions_idx: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over examples of the average precision among given classes, the best first.

    Args:
        labels: class numbers of each example, dense or sparse.
        predictions_idx: class numbers in descending order of their scores.
        weights: a tensor that broadcasts against the examples, or None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: the value's name, an open scope's that ends in "/" by preference.

    Returns:
        The mean so far, and an operation that adds a batch and returns the new mean.
    """
    average = _average_precision(labels, predictions_idx)
    if weights is not None:
        weights = broadcast_weights(cast(weights, dtypes.float64), average)
        average = emit("Mul", average, weights)
    most, add_most = _summed(
        "max", average, lambda: cast(size(average, name="batch_max"), dtypes.float64)
        if weights is None else reduce_sum(weights, name="batch_max"),
    )  # fmt: skip
    total, add_total = _summed("total", average, lambda: reduce_sum(average, name="batch_total"))
    value = across(lambda: safe_div(total, most, name="mean"))
    update = safe_div(add_total, add_most, name=name)
    return collected(value, update, metrics_collections, updates_collections)


def _summed(title: str, given: Any, batch: Callable[[], Any]) -> tuple[Any, Any]:
    with name_scope(None, title, [given]) as scope:
        held = metric_variable([], dtypes.float64, name=scope)
        return held, assign_add(held, batch(), name="update")


@explained(_WORDS)
def sparse_average_precision_at_k(
    labels: Any, predictions: Any, k: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The deprecated name of `average_precision_at_k`."""
    return average_precision_at_k(**locals())
