"""Accuracy of one batch, and the best F1 score of all so far."""

from __future__ import annotations

from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.metrics.common import Metric, aligned, collected, scope
from opdock.metrics.thresholds import counts_at, default_thresholds
from opdock.ops.cast import cast
from opdock.ops.compare import equal
from opdock.ops.fill import ones_like
from opdock.ops.reduce import reduce_max, reduce_mean, reduce_sum

__all__ = ["accuracy", "f1_score"]

_EPSILON: Final = 1e-7


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Tensor:
    """The share of predictions that are right.

    Args:
        predictions: a tensor of the type and shape of `labels`.
        labels: a tensor of integers, bools or strings.
        weights: a float32 tensor that broadcasts with them: how much each counts.
        name: a name for the operations.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: labels are of another type, or predictions are not of theirs.
    """
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    if not (labels.dtype.is_integer or labels.dtype in (dtypes.bool_, dtypes.string)):
        raise ValueError(f"Labels should have bool, integer, or string dtype, not {labels.dtype!r}")
    if not labels.dtype.is_compatible_with(predictions.dtype):
        raise ValueError(
            "Dtypes of predictions and labels should match. Given: predictions "
            f"({predictions.dtype!r}) and labels ({labels.dtype!r})"
        )
    with name_scope(name, "accuracy", [predictions, labels]):
        right = cast(equal(predictions, labels), dtypes.float32)
        if weights is None:
            return reduce_mean(right)
        return reduce_sum(right * weights) / reduce_sum(weights * ones_like(right))


def f1_score(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The best harmonic mean of precision and recall that one of many thresholds gives.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape with values in [0, 1].
        weights: a tensor that broadcasts against `labels`, or None.
        num_thresholds: how many thresholds.
        metrics_collections: collections that get the score.
        updates_collections: collections that get the update operation.
        name: of the variable scope.

    Returns:
        The score so far, and an operation that adds a batch and returns the new score.

    Raises:
        ValueError: shapes do not fit.
    """
    with scope(name, "f1", labels, predictions, weights):
        predictions, labels, weights = aligned(predictions, labels, weights)
        values, updates = counts_at(
            labels, predictions, default_thresholds(num_thresholds), weights, ("tp", "fp", "fn")
        )
        return collected(_best(values), _best(updates), metrics_collections, updates_collections)


def _best(counts: dict[str, Any]) -> Tensor:
    hits = counts["tp"] + 0.0
    precision = hits / (_EPSILON + hits + counts["fp"])
    recall = hits / (_EPSILON + hits + counts["fn"])
    return reduce_max(2.0 * precision * recall / (precision + recall + _EPSILON))
