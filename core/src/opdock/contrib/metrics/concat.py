"""All values of a stream, kept as they came, and what is computed of all of them at once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.distributions.normal import Normal
from opdock.docstrings import explained
from opdock.graph.nodes.collections import add_to_collections
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.metrics.common import WORDS, aligned, collected, metric_variable, scope
from opdock.ops.arithmetic import minimum, squared_difference
from opdock.ops.array import reshape, shape, shape_internal, size
from opdock.ops.cast import cast
from opdock.ops.check import assert_greater_equal, assert_less_equal
from opdock.ops.compare import (
    equal,
    greater,
    greater_equal,
    less,
    logical_and,
    logical_or,
)
from opdock.ops.composed.division import truediv
from opdock.ops.control import cond, group, no_op
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import ceil, exp, log, sqrt, square
from opdock.ops.fill import ones_like, zeros, zeros_like
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.padding import pad
from opdock.ops.reduce import reduce_max, reduce_min, reduce_sum
from opdock.ops.scan import cumsum
from opdock.ops.segment import segment_sum
from opdock.ops.select import where
from opdock.ops.sets import unique, unique_with_counts
from opdock.ops.sorting import top_k
from opdock.ops.state import assign
from opdock.ops.tiling import reverse

__all__ = ["AucData", "auc_with_confidence_intervals", "streaming_concat", "streaming_dynamic_auc"]

_EPSILON = 1e-7
_CURVE = {"curve": '"ROC", or "PR" for precision over recall.'}


def streaming_concat(
    values: Any, axis: int = 0, max_size: int | None = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """All values that came, one after the other.

    Room is made ahead, half as much again each time, so that a batch is seldom copied twice.

    Args:
        values: a tensor whose sizes are known in all dimensions but `axis`.
        axis: the dimension along which they are put together.
        max_size: how many are kept, the first ones; all if None.
        metrics_collections: collections for the value.
        updates_collections: collections for the update operation.
        name: a name for the scope of the variables and operations.

    Returns:
        The values so far, and an operation that adds a batch.

    Raises:
        ValueError: the rank or a size is not known, or there is no such dimension.
    """
    with scope(name, "streaming_concat", values):
        known = values.shape
        if known.ndims is None:
            raise ValueError("`values` must have known statically known rank")
        rank = known.ndims
        where_ = axis + rank if axis < 0 else axis
        if not 0 <= where_ < rank:
            raise ValueError(f"axis = {axis!r} not in [0, {rank!r})")
        fixed = [dim for i, dim in enumerate(known.as_list()) if i != where_]
        if None in fixed:
            raise ValueError(
                "all dimensions of `values` other than the dimension to concatenate along must "
                "have statically known size"
            )
        array = metric_variable([max_size or 0, *fixed], values.dtype, "array", False)
        held = metric_variable([], dtypes.int32, "size")
        order = [0 if i == where_ else i + 1 if i < where_ else i for i in range(rank)]
        valid = array[:held]
        valid.set_shape([None, *fixed])
        value = transpose(valid, order, name="concat")
        batch = shape(values)[where_]
        if max_size is not None:
            batch = minimum(batch, max_size - held)
        first = [where_, *(i for i in range(rank) if i != where_)]
        added = transpose(values, first)[:batch]
        total = held + batch

        def grow() -> Any:
            spare = zeros(convert_to_tensor([next_array_size(total) - held, *fixed]), values.dtype)
            made = assign(array, concat([array[:held], spare], 0), validate_shape=False)
            with control_dependencies([made]):
                return no_op()

        grown = cond(total > shape_internal(array, optimize=False)[0], grow, no_op)
        with control_dependencies([grown]):
            appended = array[held:total].assign(added)
        with control_dependencies([appended]):
            update = held.assign(total)
        return collected(value, update, metrics_collections, updates_collections)


def next_array_size(required_size: Any, growth_factor: float = 1.5) -> Any:
    """The least power of the growth that is as many."""
    exponent = ceil(log(cast(required_size, dtypes.float32)) / math.log(growth_factor))
    return cast(ceil(growth_factor**exponent), dtypes.int32)


def _checked(labels: Any) -> list[Any]:
    return [
        assert_greater_equal(
            labels, zeros_like(labels), message="labels must be 0 or 1, at least one is <0"
        ),
        assert_less_equal(
            labels, ones_like(labels), message="labels must be 0 or 1, at least one is >1"
        ),
    ]


# ------------------------------------------------------------------- the area, exactly
@explained(
    WORDS, **_CURVE, weights="a tensor of the shape of `labels`, or None.",
    labels="a tensor of 0 and 1.",
    returns="The area so far, and an operation that adds a batch.",
    raises="ValueError: the curve is unknown, or the shapes do not fit.",
)  # fmt: skip
def streaming_dynamic_auc(
    labels: Any, predictions: Any, curve: str = "ROC", metrics_collections: Any = (),
    updates_collections: Any = (), name: str | None = None, weights: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The area under a curve that has a point for each prediction there ever was."""
    if curve not in ("PR", "ROC"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with scope(name, "dynamic_auc"):
        labels.shape.assert_is_compatible_with(predictions.shape)
        predictions = reshape(cast(predictions, dtypes.float64), [-1])
        labels = reshape(cast(labels, dtypes.int64), [-1])
        with control_dependencies(_checked(labels)):
            given = {"preds": predictions, "labels": labels}
            if weights is not None:
                given["weights"] = reshape(cast(weights, dtypes.float64), [-1])
            kept = {key: streaming_concat(v, name=f"concat_{key}") for key, v in given.items()}
            update = group(*(step for _, step in kept.values()))
            weighed = kept["weights"][0] if "weights" in kept else None
            value = _dynamic_auc(kept["labels"][0], kept["preds"][0], curve, weighed)
            return collected(value, update, metrics_collections, updates_collections)


def _dynamic_auc(labels: Any, predictions: Any, curve: str, weights: Any) -> Any:
    if weights is None:
        weights = ones_like(labels, dtypes.float64)
    predictions, labels, weights = aligned(predictions, labels, weights)
    nothing = zeros_like(labels, dtypes.float64)
    total = reduce_sum(weights)
    positive = reduce_sum(where(greater(labels, 0), weights, nothing))

    def area() -> Any:
        ordered, indices = top_k(predictions, size(predictions))
        truth, weighed = gather(labels, indices), gather(weights, indices)
        _, _, counts = unique_with_counts(ordered)
        # Predictions that are equal cannot be told apart, so they are one point.
        splits = cast(pad(cumsum(counts), [[1, 0]]), dtypes.int32)

        def up_to(part: Any) -> Any:
            return gather(pad(cumsum(part), [[1, 0]]), splits)

        none = zeros_like(truth, dtypes.float64)
        hits = up_to(where(greater(truth, 0), weighed, none))
        recall = truediv(hits, positive)
        if curve == "ROC":
            x = truediv(up_to(where(less(truth, 1), weighed, none)), total - positive)
            y = recall
        else:
            x = recall
            y = where(greater(splits, 0), truediv(hits, up_to(weighed)), ones_like(hits))
        return reduce_sum((y[1:] + y[:-1]) / 2.0 * absolute(x[1:] - x[:-1]))

    trivial = logical_or(equal(positive, 0), equal(positive, total))
    return cond(trivial, lambda: convert_to_tensor(0, dtypes.float64), area)


# ------------------------------------------------------------- the area, and how sure it is
class AucData(NamedTuple):
    """An area under the ROC curve, and between which bounds it is."""

    auc: Any
    lower: Any
    upper: Any


@explained(
    WORDS, labels="a tensor of 0 and 1.", alpha="how sure the bounds are, from 0 to 1.",
    logit_transformation="whether bounds are of the area's logit, and so within 0 and 1.",
    returns="An `AucData` so far, and an operation that adds a batch.",
    raises="ValueError: `alpha` is no such number.",
)  # fmt: skip
def auc_with_confidence_intervals(
    labels: Any, predictions: Any, weights: Any = None, alpha: float = 0.95,
    logit_transformation: bool = True, metrics_collections: Any = (),
    updates_collections: Any = (), name: str | None = None,
) -> tuple[AucData, Any]:  # fmt: skip
    """The area under the ROC curve, with bounds by DeLong's method of placements."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1; currently {alpha:.02f}")
    weights = ones_like(predictions) if weights is None else weights
    with scope(name, "auc_with_confidence_intervals", labels, predictions, weights):
        predictions, labels, weights = aligned(predictions, labels, weights)
        total = reduce_sum(weights)
        weights = reshape(weights, [-1])
        predictions = reshape(cast(predictions, dtypes.float64), [-1])
        labels = reshape(cast(labels, dtypes.int64), [-1])
        with control_dependencies(_checked(labels)):
            given = {"preds": predictions, "labels": labels, "weights": weights}
            kept = {key: streaming_concat(v, name=f"concat_{key}") for key, v in given.items()}
            every = group(*(step for _, step in kept.values()))
            both = logical_and(equal(reduce_min(labels), 0), equal(reduce_max(labels), 1))
            enough = greater_equal(total, 1.0)
            update = cond(enough, lambda: every, no_op)
            value = _placement_auc(
                kept["labels"][0], kept["preds"][0], kept["weights"][0], alpha,
                logit_transformation, logical_and(both, enough),
            )  # fmt: skip
            if updates_collections:
                add_to_collections(updates_collections, update)
            if metrics_collections:
                add_to_collections(metrics_collections, value)
            return value, update


def _placement_auc(
    labels: Any, predictions: Any, weights: Any, alpha: float, logit: bool, is_valid: Any
) -> AucData:
    """The placement of an example is what part of the other class is placed below it."""
    ordered, indices = top_k(predictions, size(predictions))
    ordered, indices = (reverse(v, [0]) for v in (ordered, indices))
    weighed = gather(weights, indices)
    is_true = cast(gather(labels, indices), weighed.dtype)
    of_true, of_false = weighed * is_true, weighed * (1.0 - is_true)
    total_true, total_false = reduce_sum(of_true), reduce_sum(of_false)
    _, ties = unique(ordered)

    def below(others: Any) -> Any:
        """The part of the others that is below, half of what is equal counted."""
        sums = segment_sum(others, ties)
        halves = (cumsum(sums, exclusive=True) + sums / 2.0) / (reduce_sum(sums) + _EPSILON)
        return gather(halves, ties)

    placed = below(of_false) * is_true + below(of_true) * (1.0 - is_true)
    low = 1.0 - placed
    auc_false = reduce_sum(of_false * low) / (total_false + _EPSILON)
    auc_true = reduce_sum(of_true * placed) / (total_true + _EPSILON)
    auc = where(less(total_false, total_true), auc_true, auc_false)
    spread_false = reduce_sum(of_false * square(low - auc_false)) / (total_false - 1.0 + _EPSILON)
    spread_true = reduce_sum(of_true * squared_difference(placed, auc_true)) / (
        total_true - 1.0 + _EPSILON
    )
    error = sqrt(spread_false / (total_false + _EPSILON) + spread_true / (total_true + _EPSILON))
    z = Normal(0.0, 1.0).quantile((1.0 - alpha) / 2.0)
    if logit:
        middle = log(auc / (1.0 - auc + _EPSILON))
        error = error / (auc * (1.0 - auc + _EPSILON))
        bounds = [1.0 / (1.0 + exp(-(middle + side * error)) + _EPSILON) for side in (z, -z)]
    else:
        bounds = [auc + side * error for side in (z, -z)]
    certain = logical_or(equal(auc, ones_like(auc)), equal(auc, zeros_like(auc)))
    found = [auc, *(where(certain, auc, bound) for bound in bounds)]
    return AucData(*cond(is_valid, lambda: found, lambda: [convert_to_tensor(0.0)] * 3))
