"""Metrics of scores between 0 and 1 that are cut at many thresholds: AUC and its kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies
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
from opdock.ops.array import expand_dims, reshape
from opdock.ops.cast import cast
from opdock.ops.check import assert_greater_equal, assert_less_equal
from opdock.ops.composed.weights_broadcast import broadcast_weights
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_min, reduce_sum
from opdock.ops.scan import cumsum
from opdock.ops.select import where
from opdock.ops.state import assign_add
from opdock.ops.support.nn_util import emit

Counts = dict[str, Any]
_WORDS = {
    **WORDS,
    "labels": "a tensor, taken as bool.",
    "predictions": "a tensor of its shape with values in [0, 1].",
    "thresholds": "a list of numbers in [0, 1].",
    "returns": "A vector, one entry per threshold, and the update operation.",
}

_NAMES = {
    "tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives",
    "fp": "false_positives",
}  # fmt: skip
_EPSILON = 1e-7


def default_thresholds(count: int) -> list[float]:
    """`count` thresholds spread over [0, 1], the outer ones just outside."""
    inner = [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]
    return [0.0 - _EPSILON, *inner, 1.0 + _EPSILON]


def counts_at(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    includes: Sequence[str] | None = None,
) -> tuple[Counts, Counts]:  # fmt: skip
    """Variables with the counts at each threshold, and what they are after this batch.

    Args:
        labels: a tensor, taken as bool.
        predictions: a tensor of its shape with values in [0, 1].
        thresholds: numbers in [0, 1].
        weights: a tensor that broadcasts against `labels`, or None.
        includes: which of "tp", "fn", "tn" and "fp"; all of them by default.
    """
    predictions = convert_to_tensor(predictions)
    told = "predictions must be in [0, 1]"
    bounds = [cast(limit, predictions.dtype) for limit in (0, 1)]
    checks = [
        assert_greater_equal(predictions, bounds[0], message=told),
        assert_less_equal(predictions, bounds[1], message=told),
    ]
    with control_dependencies(checks):
        predictions = identity(predictions)
    return counts_over(labels, predictions, thresholds, weights, includes)


def counts_over(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    includes: Sequence[str] | None = None,
) -> tuple[Counts, Counts]:  # fmt: skip
    """`counts_at`, of predictions and thresholds that may be any numbers."""
    predictions, labels, weights = aligned(
        to_float(predictions), cast(labels, dtypes.bool_), weights
    )
    if weights is not None:
        weights = reshape(broadcast_weights(to_float(weights), predictions), [1, -1])
    scores = reshape(predictions, [1, -1])
    truth = reshape(labels, [1, -1])
    cut = expand_dims(constant(list(thresholds), dtypes.float32), [1])
    positive = emit("Greater", scores, cut)
    negative = emit("LogicalNot", positive)
    untruth = emit("LogicalNot", truth)
    pairs = {
        "tp": (truth, positive), "fn": (truth, negative), "tn": (untruth, negative),
        "fp": (untruth, positive),
    }  # fmt: skip
    values: Counts = {}
    updates: Counts = {}
    for kind in includes or _NAMES:
        held = metric_variable([len(thresholds)], dtypes.float32, _NAMES[kind])
        hits = to_float(emit("LogicalAnd", *pairs[kind]))
        if weights is not None:
            hits = hits * weights
        values[kind] = held
        updates[kind] = assign_add(held, reduce_sum(hits, 1))
    return values, updates


@explained(
    _WORDS, num_thresholds="into how many parts to cut.",
    curve='"ROC", or "PR" for precision over recall.',
    summation_method='"trapezoidal", "careful_interpolation" (for "PR"), "minoring" or "majoring".',
    thresholds="thresholds in [0, 1] instead of `num_thresholds` equal ones.",
    returns="The area so far, and an operation that adds a batch and returns the new area.",
    raises="ValueError: the curve or method is unknown, or the shapes do not fit.",
)  # fmt: skip
def auc(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Any = None, updates_collections: Any = None, curve: str = "ROC",
    name: str | None = None, summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:  # fmt: skip
    """The area under a curve, approximated by a sum over thresholds."""
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    methods = ("trapezoidal", "careful_interpolation", "minoring", "majoring")
    if summation_method not in methods:
        raise ValueError(f"Invalid summation_method: {summation_method}")
    with scope(name, "auc", labels, predictions, weights):
        if thresholds is not None:
            cuts = [-_EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
        else:
            cuts = default_thresholds(num_thresholds)
        values, updates = counts_at(labels, predictions, cuts, weights)
        value = across(lambda: _area(values, curve, summation_method, "value"))
        update = _area(updates, curve, summation_method, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def _area(counts: Counts, curve: str, method: str, name: str) -> Any:
    tp, fn, tn, fp = (counts[k] + 0.0 for k in ("tp", "fn", "tn", "fp"))
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated(tp, fp, fn, name)
    epsilon = 1.0e-6
    recall = (tp + epsilon) / (tp + fn + epsilon)
    if curve == "ROC":
        x, y = fp / (fp + tn + epsilon), recall
    else:
        x, y = recall, (tp + epsilon) / (tp + fp + epsilon)
    left, right = y[:-1], y[1:]
    if method == "minoring":
        height = emit("Minimum", left, right)
    elif method == "majoring":
        height = emit("Maximum", left, right)
    else:
        height = (left + right) / 2.0
    return reduce_sum((x[:-1] - x[1:]) * height, name=name)


def _interpolated(tp: Any, fp: Any, fn: Any, name: str) -> Any:
    """Davis & Goadrich 2006: between two thresholds false positives grow in line with true."""
    more_tp = tp[:-1] - tp[1:]
    positive = tp + fp
    before, after = positive[:-1], positive[1:]
    slope = emit("DivNoNan", more_tp, emit("Maximum", before - after, 0.0))
    intercept = tp[1:] - slope * after
    both = emit("LogicalAnd", emit("Greater", before, 0.0), emit("Greater", after, 0.0))
    ratio = where(both, emit("DivNoNan", before, after), emit("OnesLike", after))
    area = slope * (more_tp + intercept * emit("Log", ratio))
    return reduce_sum(emit("DivNoNan", area, emit("Maximum", tp[1:] + fn[1:], 0.0)), name=name)


def _rates(
    title: str, kinds: tuple[str, str], labels: Any, predictions: Any, thresholds: Any,
    weights: Any, metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    with scope(name, title, predictions, labels, weights):
        values, updates = counts_at(labels, predictions, thresholds, weights, kinds)
        epsilon = 1e-7

        def part(counts: Counts, node: str) -> Any:
            right, wrong = counts[kinds[0]], counts[kinds[1]]
            return emit("RealDiv", right + 0.0, right + wrong + epsilon, name=node)

        value, update = across(lambda: part(values, "value")), part(updates, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@explained(_WORDS)
def precision_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part true among those with a score above each threshold."""
    return _rates("precision_at_thresholds", ("tp", "fp"), **locals())


@explained(_WORDS)
def recall_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part with a score above each threshold among those that are true."""
    return _rates("recall_at_thresholds", ("tp", "fn"), **locals())


@explained(_WORDS)
def true_positives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of true positives at each threshold."""
    return _counted_at("tp", **locals())


@explained(_WORDS)
def false_positives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of false positives at each threshold."""
    return _counted_at("fp", **locals())


@explained(_WORDS)
def true_negatives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of true negatives at each threshold."""
    return _counted_at("tn", **locals())


@explained(_WORDS)
def false_negatives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The number of false negatives at each threshold."""
    return _counted_at("fn", **locals())


def _rates_when(
    title: str, weighed: Callable[[Counts], Any], held: Callable[[Any], Any],
    part: tuple[str, str], cuts: Sequence[float], labels: Any, predictions: Any, weights: Any,
    metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    """One rate at the threshold where another is closest to what is wanted.

    Args:
        title: the default name of the scope.
        weighed: the distance of the other rate from what is wanted, at each threshold.
        held: the threshold's index, of those distances.
        part: which counts make up the rate: the right ones and the wrong ones.
        cuts: the thresholds.
        labels, predictions, weights, metrics_collections, updates_collections, name: the user's.
    """
    with scope(name, title, predictions, labels, weights):
        values, updates = counts_at(labels, predictions, cuts, weights)

        def rate(counts: Counts, node: str) -> Any:
            at = cast(held(weighed(counts)), dtypes.int32)
            right, wrong = counts[part[0]][at], counts[part[1]][at]
            return emit("RealDiv", right, right + wrong + _EPSILON, name=node)

        value = across(lambda: rate({kind: held + 0.0 for kind, held in values.items()}, "value"))
        update = rate(updates, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@explained(
    _WORDS, specificity="the specificity to be kept, in [0, 1].",
    num_thresholds="how many thresholds to try.",
    returns="The sensitivity so far, and an operation that adds a batch and returns the new one.",
    raises="ValueError: the specificity is not in [0, 1], or the shapes do not fit.",
)  # fmt: skip
def sensitivity_at_specificity(
    labels: Any, predictions: Any, specificity: float, weights: Any = None,
    num_thresholds: int = 200, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> Metric:  # fmt: skip
    """The recall of positives at the threshold whose recall of negatives is closest to a value."""
    if not 0 <= specificity <= 1:
        raise ValueError("`specificity` must be in the range [0, 1].")

    def distance(counts: Counts) -> Any:
        rate = emit("RealDiv", counts["tn"], counts["tn"] + counts["fp"] + _EPSILON)
        return emit("Abs", rate - specificity)

    return _rates_when(
        "sensitivity_at_specificity", distance, lambda far: emit("ArgMin", far, 0), ("tp", "fn"),
        default_thresholds(num_thresholds), labels, predictions, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


@explained(
    _WORDS, sensitivity="the sensitivity to be kept, in [0, 1].",
    num_thresholds="how many thresholds to try.",
    returns="The specificity so far, and an operation that adds a batch and returns the new one.",
    raises="ValueError: the sensitivity is not in [0, 1], or the shapes do not fit.",
)  # fmt: skip
def specificity_at_sensitivity(
    labels: Any, predictions: Any, sensitivity: float, weights: Any = None,
    num_thresholds: int = 200, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> Metric:  # fmt: skip
    """The recall of negatives at the last threshold whose recall of positives is closest."""
    if not 0 <= sensitivity <= 1:
        raise ValueError("`sensitivity` must be in the range [0, 1].")

    def distance(counts: Counts) -> Any:
        rate = emit("RealDiv", counts["tp"], counts["tp"] + counts["fn"] + _EPSILON)
        return emit("Abs", rate - sensitivity)

    def last(far: Any) -> Any:
        closest = cast(emit("Equal", far, reduce_min(far)), dtypes.int64)
        return emit("ArgMax", cumsum(closest), 0)

    return _rates_when(
        "specificity_at_sensitivity", distance, last, ("tn", "fp"),
        [*default_thresholds(num_thresholds)[:-1], 1.0 - _EPSILON], labels, predictions, weights,
        metrics_collections, updates_collections, name,
    )  # fmt: skip


def _counted_at(
    kind: str, labels: Any, predictions: Any, thresholds: Any, weights: Any,
    metrics_collections: Any, updates_collections: Any, name: str | None,
) -> Metric:  # fmt: skip
    with scope(name, _NAMES[kind], predictions, labels, weights):
        values, updates = counts_at(labels, predictions, thresholds, weights, (kind,))
        return collected(
            across(values[kind].value), updates[kind], metrics_collections, updates_collections
        )
