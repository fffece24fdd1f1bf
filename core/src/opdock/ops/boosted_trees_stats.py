"""Gradient boosted trees: sums of gradients by bucket, and the splits that gain most from them."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig, define_op
from opdock.shapes import Shape

__all__: list[str] = []

_SUMS = "max_splits: int >= 1, num_buckets: int >= 1"
_REGULARIZED = "l1: float, l2: float, tree_complexity: float, min_node_weight: float"
_SPLITS = (
    "-> node_ids: int32, gains: float, feature_dimensions: int32, thresholds: int32, "
    "left_node_contribs: float, right_node_contribs: float, "
    "split_with_default_directions: string"
)

make_stats_summary_op = define_op(
    "BoostedTreesMakeStatsSummary",
    "node_ids: int32, gradients: float, hessians: float, "
    "bucketized_features_list: num_features * int32 -> stats_summary: float",
    f"{_SUMS}, num_features: int >= 1",
).not_differentiable()
aggregate_stats_op = define_op(
    "BoostedTreesAggregateStats",
    "node_ids: int32, gradients: float, hessians: float, feature: int32 -> stats_summary: float",
    _SUMS,
).not_differentiable()
sparse_aggregate_stats_op = define_op(
    "BoostedTreesSparseAggregateStats",
    "node_ids: int32, gradients: float, hessians: float, feature_indices: int32, "
    "feature_values: int32, feature_shape: int32 "
    "-> stats_summary_indices: int32, stats_summary_values: float, stats_summary_shape: int32",
    _SUMS,
).not_differentiable()
best_gains_op = define_op(
    "BoostedTreesCalculateBestGainsPerFeature",
    f"node_id_range: int32, stats_summary_list: num_features * float, {_REGULARIZED} "
    "-> node_ids_list: num_features * int32, gains_list: num_features * float, "
    "thresholds_list: num_features * int32, left_node_contribs_list: num_features * float, "
    "right_node_contribs_list: num_features * float",
    "max_splits: int >= 1, num_features: int >= 1",
).not_differentiable()
best_split_op = define_op(
    "BoostedTreesCalculateBestFeatureSplit",
    f"node_id_range: int32, stats_summary: float, {_REGULARIZED} {_SPLITS}",
    "logits_dimension: int >= 1, split_type: {'inequality', 'equality'} = 'inequality'",
).not_differentiable()
sparse_best_split_op = define_op(
    "BoostedTreesSparseCalculateBestFeatureSplit",
    "node_id_range: int32, stats_summary_indices: int32, stats_summary_values: float, "
    f"stats_summary_shape: int32, {_REGULARIZED} {_SPLITS}",
    "logits_dimension: int >= 1, split_type: {'inequality'} = 'inequality'",
).not_differentiable()


Rows = tuple[int | None, ...]


def _batch(sig: ShapeSig) -> tuple[int | None, Rows, Rows]:
    """The number of examples, and the shapes of their gradients and hessians."""
    (size,) = shapes.with_rank(sig.shapes[0], 1)
    gradients, hessians = (shapes.with_rank(sig.shapes[i], 2) for i in (1, 2))
    for rows in (gradients[0], hessians[0]):
        size = shapes.merge_dim(size, rows)
    return size, gradients, hessians


@make_stats_summary_op.shape
def _make_stats_summary_shape(sig: ShapeSig) -> Shape:
    size, gradients, hessians = _batch(sig)
    shapes.merge(gradients, hessians)
    for feature in sig.shapes[3:]:
        shapes.merge_dim(size, shapes.with_rank(feature, 1)[0])
    return (sig.attrs["num_features"], sig.attrs["max_splits"], sig.attrs["num_buckets"], 2)


def _stats_dims(gradients: Rows, hessians: Rows) -> int | None:
    if gradients[1] is None or hessians[1] is None:
        return None
    return gradients[1] + hessians[1]


@aggregate_stats_op.shape
def _aggregate_stats_shape(sig: ShapeSig) -> Shape:
    size, gradients, hessians = _batch(sig)
    rows, width = shapes.with_rank(sig.shapes[3], 2)
    shapes.merge_dim(size, rows)
    # TF 1.15's static shape has these in another order, and lacks the bucket of what is missing.
    buckets = sig.attrs["num_buckets"] + 1
    return (sig.attrs["max_splits"], width, buckets, _stats_dims(gradients, hessians))


@sparse_aggregate_stats_op.shape
def _sparse_aggregate_stats_shape(sig: ShapeSig) -> list[Shape]:
    _batch(sig)
    rows, _ = shapes.with_rank(sig.shapes[3], 2)
    shapes.merge_dim(rows, shapes.with_rank(sig.shapes[4], 1)[0])
    shapes.merge_dim(shapes.with_rank(sig.shapes[5], 1)[0], 2)
    return [(None, 4), (None,), (4,)]


def _check_range_and_numbers(sig: ShapeSig, numbers: int) -> None:
    shapes.merge(shapes.with_rank(sig.shapes[0], 1), (2,))
    for given in sig.shapes[numbers:]:
        shapes.with_rank(given, 0)


@best_gains_op.shape
def _best_gains_shape(sig: ShapeSig) -> list[Shape]:
    count = sig.attrs["num_features"]
    _check_range_and_numbers(sig, count + 1)
    summary: Shape = (sig.attrs["max_splits"], None, 2)
    for given in sig.shapes[1 : count + 1]:
        summary = shapes.merge(summary, shapes.with_rank(given, 3))
    return [(None,)] * (3 * count) + [(None, 1)] * (2 * count)


@best_split_op.shape
def _best_split_shape(sig: ShapeSig) -> list[Shape]:
    _check_range_and_numbers(sig, 2)
    shapes.with_rank(sig.shapes[1], 4)
    return _splits_shape(sig.attrs["logits_dimension"])


@sparse_best_split_op.shape
def _sparse_best_split_shape(sig: ShapeSig) -> list[Shape]:
    _check_range_and_numbers(sig, 4)
    shapes.with_rank(sig.shapes[1], 2)
    shapes.with_rank(sig.shapes[2], 1)
    shapes.merge(shapes.with_rank(sig.shapes[3], 1), (4,))
    return _splits_shape(1)


def _splits_shape(logits: int) -> list[Shape]:
    # TF 1.15's static shape calls the contributions vectors; its kernel makes matrices.
    vector: Shape = (None,)
    contributions: Shape = (None, logits)
    return [*[vector] * 4, contributions, contributions, vector]
