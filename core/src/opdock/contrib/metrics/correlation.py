"""How two streams go together: covariance, correlation, distance, agreement; and how many came."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.contrib.metrics.renamed import streaming_mean
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.metrics.common import (
    WORDS,
    Metric,
    aggregate_variable,
    aligned,
    collected,
    metric_variable,
    safe_div,
    scope,
    to_float,
)
from opdock.ops.arithmetic import multiply, subtract
from opdock.ops.array import size, squeeze
from opdock.ops.cast import cast
from opdock.ops.compare import less_equal
from opdock.ops.composed.confusion import confusion_matrix
from opdock.ops.composed.division import div_no_nan, truediv
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.diag import diag_part
from opdock.ops.elementary import sqrt
from opdock.ops.fill import fill
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.state import assign_add

__all__ = [
    "cohen_kappa", "count", "streaming_covariance", "streaming_mean_cosine_distance",
    "streaming_pearson_correlation",
]  # fmt: skip

_WORDS = WORDS | {
    "returns": "The value so far, and an operation that adds a batch and returns the new value.",
}


@explained(_WORDS)
def streaming_covariance(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The unbiased sample covariance, whose running form loses no digits (Chan et al. 1979)."""
    with scope(name, "covariance", predictions, labels, weights):
        predictions, labels, weights = aligned(predictions, labels, weights)
        count, mean_prediction, mean_label, comoment = (
            metric_variable([], dtypes.float32, kind)
            for kind in ("count", "mean_prediction", "mean_label", "comoment")
        )
        if weights is None:
            weights = convert_to_tensor(1.0, predictions.dtype)
            batch = to_float(size(labels))
        else:
            weights = broadcast_weights(weights, labels)
            batch = reduce_sum(weights)
        total = assign_add(count, batch)
        before = total - batch

        def moved(mean: Any, values: Any) -> tuple[Any, Any, Any]:
            """The mean of the batch, and that of all before it."""
            own = div_no_nan(reduce_sum(multiply(values, weights)), batch)
            step = div_no_nan((own - mean) * batch, total)
            return own, assign_add(mean, step) - step, step

        batch_prediction, old_prediction, _ = moved(mean_prediction, predictions)
        batch_label, old_label, _ = moved(mean_label, labels)
        within = reduce_sum((predictions - batch_prediction) * (labels - batch_label) * weights)
        between = (old_prediction - batch_prediction) * (old_label - batch_label)
        update = assign_add(comoment, within + between * (before * batch / total))

        def covariance(name: str) -> Any:
            unknown = fill([], float("nan"))
            return where(less_equal(count, 1.0), unknown, truediv(comoment, count - 1), name)

        value = covariance("covariance")
        with control_dependencies([update]):
            new = covariance("update_op")
    return collected(value, new, metrics_collections, updates_collections)


@explained(_WORDS)
def streaming_pearson_correlation(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """Pearson's correlation coefficient."""
    with scope(name, "pearson_r", predictions, labels, weights):
        predictions, labels, weights = aligned(predictions, labels, weights)
        if weights is not None:
            weights = broadcast_weights(weights, labels)
        both = streaming_covariance(predictions, labels, weights, name="covariance")
        own = streaming_covariance(predictions, predictions, weights, name="variance_predictions")
        other = streaming_covariance(labels, labels, weights, name="variance_labels")
        value, update = (
            truediv(both[i], multiply(sqrt(own[i]), sqrt(other[i])), name)
            for i, name in enumerate(("pearson_r", "update_op"))
        )
    return collected(value, update, metrics_collections, updates_collections)


@explained(_WORDS, dim="the dimension along which there are vectors of length 1.")
def streaming_mean_cosine_distance(
    predictions: Any, labels: Any, dim: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean cosine distance."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    products = reduce_sum(multiply(predictions, labels), axis=[dim], keepdims=True)
    title = name or "mean_cosine_distance"
    similar, update = streaming_mean(products, weights, None, None, title)
    return collected(
        subtract(1.0, similar), subtract(1.0, update), metrics_collections, updates_collections
    )


@explained(_WORDS, values="a tensor.", weights="a tensor that broadcasts against it, or None.")
def count(
    values: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """How many values there were, or the sum of their weights."""
    with scope(name, "count", values, weights):
        total = metric_variable([], dtypes.float32, "count")
        values = convert_to_tensor(values)
        if weights is None:
            batch = to_float(size(values))
        else:
            values, _, weights = aligned(to_float(values), None, weights)
            batch = reduce_sum(broadcast_weights(to_float(weights), values))
        with control_dependencies([values]):
            update = assign_add(total, batch)
        value = aggregate_variable(total, metrics_collections)
        return collected(value, update, None, updates_collections)


@explained(
    _WORDS, labels="class numbers, of rank 1, or [examples, 1].",
    predictions_idx="the class numbers that were predicted.",
    num_classes="how many classes there are, 2 or more.",
    raises="ValueError: there is one class, or the shapes do not fit.",
)  # fmt: skip
def cohen_kappa(
    labels: Any, predictions_idx: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """Cohen's kappa: how much two judges agree beyond what they would by chance."""
    if num_classes < 2:
        raise ValueError(f"`num_classes` must be >= 2.Found: {num_classes}")
    with scope(name, "cohen_kappa", labels, predictions_idx, weights):
        labels = convert_to_tensor(labels)
        labels.shape.with_rank_at_most(2)
        if labels.shape.ndims == 2:
            labels = squeeze(labels, [-1])
        predicted, labels, weights = aligned(predictions_idx, labels, weights)
        integers = weights is None or weights.dtype.is_integer
        dtype = dtypes.int64 if integers else dtypes.float32
        held = [metric_variable((num_classes,), dtype, k) for k in ("po", "pe_row", "pe_col")]
        table = confusion_matrix(labels, predicted, num_classes, dtype, "counts_in_table", weights)
        batch = (diag_part(table), reduce_sum(table, axis=0), reduce_sum(table, axis=1))
        added = [assign_add(v, more) for v, more in zip(held, batch, strict=True)]

        def kappa(parts: Any, name: str) -> Any:
            agreed, rows, columns = parts
            total = cast(reduce_sum(rows), dtypes.float64)
            expected = reduce_sum(div_no_nan(cast(rows * columns, dtypes.float64), total))
            return safe_div(
                cast(reduce_sum(agreed), dtypes.float64) - expected, total - expected, name
            )

        return collected(
            kappa(held, "value"), kappa(added, "update_op"), metrics_collections,
            updates_collections,
        )  # fmt: skip
