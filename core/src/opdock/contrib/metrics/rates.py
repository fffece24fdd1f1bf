"""Rates of what is taken for something else, at one or many thresholds, and what they lead to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from opdock import dtypes, metrics
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.metrics.common import WORDS, Metric, aligned, collected, metric_variable, scope
from opdock.metrics.thresholds import counts_over, default_thresholds
from opdock.ops.argmax import argmax, argmin
from opdock.ops.arithmetic import maximum
from opdock.ops.array import reshape
from opdock.ops.cast import cast
from opdock.ops.check import assert_greater_equal, assert_less_equal
from opdock.ops.compare import greater, greater_equal
from opdock.ops.composed.check_static import assert_type
from opdock.ops.composed.division import div
from opdock.ops.composed.variable_scatter import scatter_add
from opdock.ops.control import cond, group
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import floor
from opdock.ops.fill import lin_space, zeros_like
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_sum
from opdock.ops.scan import cumsum
from opdock.ops.select import where

__all__ = [
    "PrecisionRecallData", "precision_at_recall", "precision_recall_at_equal_thresholds",
    "recall_at_precision", "streaming_curve_points", "streaming_false_negative_rate",
    "streaming_false_negative_rate_at_thresholds", "streaming_false_negatives_at_thresholds",
    "streaming_false_positive_rate", "streaming_false_positive_rate_at_thresholds",
    "streaming_false_positives_at_thresholds", "streaming_true_negatives_at_thresholds",
    "streaming_true_positives_at_thresholds",
]  # fmt: skip

_EPSILON = 1e-7
_WORDS = WORDS | {
    "thresholds": "numbers; what is above one is taken for positive.",
    "num_thresholds": "how many thresholds, equally far apart, are tried.",
    "returns": "The value so far, and an operation that adds a batch and returns the new value.",
}


# -------------------------------------------------------------------------- one threshold
@explained(_WORDS, predictions="what is taken for true, as bools.", labels="what is true.")
def streaming_false_positive_rate(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of what is false that is taken for true."""
    return _rate("false_positive_rate", metrics.false_positives, metrics.true_negatives, **locals())


@explained(_WORDS, predictions="what is taken for true, as bools.", labels="what is true.")
def streaming_false_negative_rate(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of what is true that is taken for false."""
    return _rate("false_negative_rate", metrics.false_negatives, metrics.true_positives, **locals())


def _rate(
    title: str, wrong: Callable[..., Metric], right: Callable[..., Metric], predictions: Any,
    labels: Any, weights: Any, metrics_collections: Any, updates_collections: Any,
    name: str | None,
) -> Metric:  # fmt: skip
    with scope(name, title, predictions, labels, weights):
        predictions, labels, weights = aligned(
            cast(predictions, dtypes.bool_), cast(labels, dtypes.bool_), weights
        )
        missed, hit = wrong(labels, predictions, weights), right(labels, predictions, weights)

        def share(index: int, name: str) -> Tensor:
            part = missed[index]
            whole = part + hit[index]
            return where(greater(whole, 0), div(part, whole), zeros_like(part), name)

        return collected(
            share(0, "value"), share(1, "update_op"), metrics_collections, updates_collections
        )


# ------------------------------------------------------------------------- many thresholds
def _counts_at(kind: str) -> Callable[..., Any]:
    def counted(
        predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None
    ) -> tuple[Any, Any]:
        values, updates = counts_over(labels, predictions, thresholds, weights, (kind,))
        return values[kind], updates[kind]

    return counted


@explained(_WORDS)
def streaming_true_positives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """How many are taken for positive and are it, at each threshold."""
    return _counts_at("tp")(**locals())  # type: ignore[no-any-return]


@explained(_WORDS)
def streaming_false_negatives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """How many are taken for negative and are not, at each threshold."""
    return _counts_at("fn")(**locals())  # type: ignore[no-any-return]


@explained(_WORDS)
def streaming_false_positives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """How many are taken for positive and are not, at each threshold."""
    return _counts_at("fp")(**locals())  # type: ignore[no-any-return]


@explained(_WORDS)
def streaming_true_negatives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """How many are taken for negative and are it, at each threshold."""
    return _counts_at("tn")(**locals())  # type: ignore[no-any-return]


@explained(_WORDS)
def streaming_false_positive_rate_at_thresholds(
    predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of what is negative that is taken for positive, at each threshold."""
    return _rates("false_positive_rate_at_thresholds", "fp", "tn", **locals())


@explained(_WORDS)
def streaming_false_negative_rate_at_thresholds(
    predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of what is positive that is taken for negative, at each threshold."""
    return _rates("false_negative_rate_at_thresholds", "fn", "tp", **locals())


def _rates(
    title: str, wrong: str, right: str, predictions: Any, labels: Any, thresholds: Any,
    weights: Any, metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    with scope(name, title, predictions, labels, weights):
        both = counts_over(labels, predictions, thresholds, weights, (wrong, right))
        value, update = (
            div(counts[wrong], _EPSILON + counts[wrong] + counts[right], f"{wrong}r_{name}")
            for counts, name in zip(both, ("value", "update_op"), strict=True)
        )
        return collected(value, update, metrics_collections, updates_collections)


@explained(_WORDS, curve='"ROC", or "PR" for precision over recall.')
def streaming_curve_points(
    labels: Any = None, predictions: Any = None, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Any = None, updates_collections: Any = None, curve: str = "ROC",
    name: str | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """The points [x, y] of a curve, one for each threshold."""
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with scope(name, "curve_points", labels, predictions, weights):
        cuts = default_thresholds(num_thresholds)
        counts, updates = counts_over(labels, predictions, cuts, weights)
        tp, fn, tn, fp = (counts[kind] for kind in ("tp", "fn", "tn", "fp"))
        least = 1e-6
        recall = div(tp + least, tp + fn + least)
        if curve == "ROC":
            points = stack([div(fp, fp + tn + least), recall], axis=1)
        else:
            points = stack([recall, div(tp + least, tp + fp + least)], axis=1)
        return collected(points, group(*updates.values()), metrics_collections, updates_collections)


@explained(
    _WORDS, precision="the precision that is wanted, from 0 to 1.",
    strict_mode="whether it must be reached; else the nearest will do.",
    raises="ValueError: the precision is none.",
)  # fmt: skip
def recall_at_precision(
    labels: Any, predictions: Any, precision: float, weights: Any = None,
    num_thresholds: int = 200, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None, strict_mode: bool = False,
) -> Metric:  # fmt: skip
    """The recall at the threshold with this precision."""
    if not 0 <= precision <= 1:
        raise ValueError("`precision` must be in the range [0, 1].")

    def recall(tp: Any, fp: Any, fn: Any, name: str) -> Any:
        found = div(tp, tp + fp + _EPSILON)

        def at(index: Any) -> Any:
            return div(tp[index], tp[index] + fn[index] + _EPSILON, name)

        if not strict_mode:
            return at(argmin(absolute(found - precision), 0, output_type=dtypes.int32))
        # The least excess has the largest inverse; what falls short has a negative one.
        best = argmax(div(1.0, found - precision + _EPSILON), 0, output_type=dtypes.int32)
        return cond(found[best] >= precision, lambda: at(best), lambda: convert_to_tensor(0.0))

    return _at_best("recall_at_precision", recall, labels, predictions, weights, num_thresholds,
                    metrics_collections, updates_collections, name)  # fmt: skip


@explained(
    _WORDS, target_recall="the recall that is wanted, from 0 to 1.",
    raises="ValueError: the recall is none.",
)  # fmt: skip
def precision_at_recall(
    labels: Any, predictions: Any, target_recall: float, weights: Any = None,
    num_thresholds: int = 200, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> Metric:  # fmt: skip
    """The precision at the highest threshold with this recall."""
    if not 0 <= target_recall <= 1:
        raise ValueError("`target_recall` must be in the range [0, 1].")

    def precision(tp: Any, fp: Any, fn: Any, name: str) -> Any:
        enough = greater_equal(div(tp, tp + fn + _EPSILON), target_recall)
        last = reduce_sum(cast(enough, dtypes.int64)) - 1
        return div(tp[last] + _EPSILON, tp[last] + fp[last] + _EPSILON, name)

    return _at_best("precision_at_recall", precision, labels, predictions, weights, num_thresholds,
                    metrics_collections, updates_collections, name)  # fmt: skip


def _at_best(
    title: str, compute: Callable[..., Any], labels: Any, predictions: Any, weights: Any,
    num_thresholds: int, metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    with scope(name, title, predictions, labels, weights):
        both = counts_over(labels, predictions, default_thresholds(num_thresholds), weights)
        value, update = (
            compute(counts["tp"] + 0.0, counts["fp"] + 0.0, counts["fn"] + 0.0, name)
            for counts, name in zip(both, ("value", "update_op"), strict=True)
        )
        return collected(value, update, metrics_collections, updates_collections)


class PrecisionRecallData(NamedTuple):
    """Counts and shares at each threshold."""

    tp: Any
    fp: Any
    tn: Any
    fn: Any
    precision: Any
    recall: Any
    thresholds: Any


def precision_recall_at_equal_thresholds(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int | None = None,
    use_locking: bool | None = None, name: str | None = None,
) -> tuple[PrecisionRecallData, Any]:  # fmt: skip
    """Precision and recall at thresholds equally far apart, in time that does not grow with them.

    Args:
        labels: bools.
        predictions: numbers in [0, 1] of the same shape.
        weights: a tensor that broadcasts against `labels`; 1 if None.
        num_thresholds: how many there are; 201 if None.
        use_locking: whether updates wait for each other; they do if None.
        name: a name for the scope of the variables and operations.

    Returns:
        The values so far, and an operation that adds a batch.
    """
    count = 201 if num_thresholds is None else num_thresholds
    locking = True if use_locking is None else use_locking
    weights = 1.0 if weights is None else weights
    assert_type(labels, dtypes.bool_)
    exact = dtypes.float64
    title = "precision_recall_at_equal_thresholds"
    with scope(name, title, labels, predictions, weights):
        told = "predictions must be in [0, 1]"
        bounds = [cast(bound, predictions.dtype) for bound in (0.0, 1.0)]
        checks = [
            assert_greater_equal(predictions, bounds[0], message=told),
            assert_less_equal(predictions, bounds[1], message=told),
        ]
        with control_dependencies(checks):
            predictions, labels, weights = aligned(predictions, labels, weights)
        is_true = cast(labels, exact)
        weights = cast(weights, exact)
        scores = reshape(predictions, [-1])
        buckets = cast(floor(scores * (count - 1)), dtypes.int32)
        with name_scope("variables"):
            held = [metric_variable([count], exact, f"{k}_buckets") for k in ("tp", "fp")]
        with name_scope("update_op"):
            added = [
                scatter_add(variable, buckets, reshape(part * weights, [-1]), locking)
                for variable, part in zip(held, (is_true, 1.0 - is_true), strict=True)
            ]
        tp, fp = (
            cumsum(variable, reverse=True, name=k)
            for variable, k in zip(held, ("tp", "fp"), strict=True)
        )
        tn, fn = fp[0] - fp, tp[0] - tp
        least = convert_to_tensor(_EPSILON, exact)
        found = PrecisionRecallData(
            tp, fp, tn, fn, tp / maximum(least, tp + fp), tp / maximum(least, tp + fn),
            lin_space(0.0, 1.0, count),
        )  # fmt: skip
        shown = PrecisionRecallData(*(cast(value, scores.dtype) for value in found))
        return shown, group(*added)
