"""Oracle of sums of gradients by bucket, and of the splits that gain most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


@reference("BoostedTreesMakeStatsSummary")
def make_stats_summary(
    attrs: Attrs, node_ids: Array, gradients: Array, hessians: Array, features: Any
) -> Array:
    """Example by example; the last bucket takes what lies beyond it."""
    last = attrs["num_buckets"] - 1
    sums = np.zeros((len(features), attrs["max_splits"], last + 1, 2))
    for f, buckets in enumerate(features):
        for i, node in enumerate(node_ids):
            sums[f, node, min(buckets[i], last)] += (gradients[i, 0], hessians[i, 0])
    return sums


@reference("BoostedTreesAggregateStats")
def aggregate_stats(
    attrs: Attrs, node_ids: Array, gradients: Array, hessians: Array, feature: Array
) -> Array:
    """Example by example; -1 is missing."""
    stats = np.concatenate([gradients, hessians], axis=1)
    missing = attrs["num_buckets"]
    sums = np.zeros((attrs["max_splits"], feature.shape[1], missing + 1, stats.shape[1]))
    for i, node in enumerate(node_ids):
        for d, bucket in enumerate(feature[i]):
            sums[node, d, missing if bucket == -1 else bucket] += stats[i]
    return sums


@reference("BoostedTreesSparseAggregateStats")
def sparse_aggregate_stats(
    attrs: Attrs, node_ids: Array, gradients: Array, hessians: Array, indices: Array,
    values: Array, shape: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The dense sums of those buckets in which there are examples."""
    dense = np.full((len(node_ids), shape[1]), -1)
    for (i, d), value in zip(indices, values, strict=True):
        dense[i, d] = value
    sums = aggregate_stats(attrs, node_ids, gradients, hessians, dense)
    counts = aggregate_stats(attrs, node_ids, np.ones_like(gradients), hessians, dense)[..., 0]
    cells = [(*cell, s) for cell in np.argwhere(counts) for s in range(sums.shape[3])]
    places = np.array(cells, np.int32).reshape(-1, 4)
    return places, np.array([sums[cell] for cell in cells]), np.array(sums.shape, np.int32)


def _leaf(stats: Array, logits: int, l1: float, l2: float) -> tuple[Array, float]:
    """A leaf's weights, and what it gains."""
    g, h = stats[:logits], stats[logits:]
    if logits > 1:
        matrix = np.diag(h) if len(h) == logits else h.reshape(logits, logits)
        weights = -np.linalg.solve(matrix + l2 * np.eye(logits), g)
        return weights, float(-g @ weights)
    shrunk = np.sign(g[0]) * max(abs(g[0]) - l1, 0.0)
    if h[0] + l2 <= 1e-15:
        return np.zeros(1), 0.0
    weight = -shrunk / (h[0] + l2)
    return np.array([weight]), float(-shrunk * weight)


def _best(
    candidates: Iterator[tuple[tuple[int, int, bytes], Array]], total: Array, logits: int,
    l1: float, l2: float,
) -> tuple[float, Any, Array, Array]:  # fmt: skip
    """The gain over the parent's, the first candidate that has it, and its leaves' weights."""
    found: Any = None
    for what, left in candidates:
        to_left, gain_left = _leaf(left, logits, l1, l2)
        to_right, gain_right = _leaf(total - left, logits, l1, l2)
        if found is None or gain_left + gain_right > found[0] + 1e-9:
            found = gain_left + gain_right, what, to_left, to_right
    gain, *rest = found
    return (gain - _leaf(total, logits, l1, l2)[1], *rest)


def _table(rows: list[Any], logits: int) -> tuple[Array, ...]:
    names = np.empty(len(rows), object)
    names[:] = [row[3] for row in rows]
    return (
        np.array([row[0] for row in rows], np.int32), np.array([row[4] for row in rows]),
        np.array([row[1] for row in rows], np.int32), np.array([row[2] for row in rows], np.int32),
        np.array([row[5] for row in rows]).reshape(-1, logits),
        np.array([row[6] for row in rows]).reshape(-1, logits), names,
    )  # fmt: skip


@reference("BoostedTreesCalculateBestGainsPerFeature")
def best_gains(
    attrs: Attrs, node_range: Array, summaries: Any, l1: Array, l2: Array, complexity: Array,
    min_weight: Array,
) -> Any:  # fmt: skip
    """Bucket by bucket."""
    columns: list[list[Array]] = [[], [], [], [], []]
    for summary in summaries:
        rows = []
        for node in range(*node_range):
            total = summary[node].sum(axis=0)
            if total[1] < min_weight:
                continue
            sums = (
                ((0, b, b""), summary[node, : b + 1].sum(axis=0)) for b in range(summary.shape[1])
            )
            gain, (_, bucket, _), left, right = _best(sums, total, 1, float(l1), float(l2))
            rows.append((node, 0, bucket, b"", gain - complexity, left, right))
        nodes, gains, _, thresholds, left, right, _ = _table(rows, 1)
        for column, value in zip(columns, (nodes, gains, thresholds, left, right), strict=True):
            column.append(value)
    return tuple(columns)


def _inequalities(stats: Array) -> Iterator[tuple[tuple[int, int, bytes], Array]]:
    for d, of_dimension in enumerate(stats):
        for b in range(len(of_dimension) - 1):
            below = of_dimension[: b + 1].sum(axis=0)
            yield (d, b, b"INEQUALITY_DEFAULT_LEFT"), below + of_dimension[-1]
            yield (d, b, b"INEQUALITY_DEFAULT_RIGHT"), below


def _equalities(stats: Array) -> Iterator[tuple[tuple[int, int, bytes], Array]]:
    for d, of_dimension in enumerate(stats):
        for b in range(len(of_dimension) - 1):
            yield (d, b, b"EQUALITY_DEFAULT_RIGHT"), of_dimension[b]


@reference("BoostedTreesCalculateBestFeatureSplit")
def best_split(
    attrs: Attrs, node_range: Array, summary: Array, l1: Array, l2: Array, complexity: Array,
    min_weight: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """Bucket by bucket."""
    logits, rows = attrs["logits_dimension"], []
    kinds = _equalities if attrs.get("split_type") == "equality" else _inequalities
    for node in range(*node_range):
        total = summary[node, 0].sum(axis=0)
        if np.linalg.norm(total[logits:]) < min_weight:
            continue
        gain, what, left, right = _best(kinds(summary[node]), total, logits, float(l1), float(l2))
        rows.append((node, *what, gain - complexity, left, right))
    return _table(rows, logits)


@reference("BoostedTreesSparseCalculateBestFeatureSplit")
def sparse_best_split(
    attrs: Attrs, node_range: Array, indices: Array, values: Array, shape: Array, l1: Array,
    l2: Array, complexity: Array, min_weight: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The dense one's, with missing values on the right where that gains as much."""
    dense = np.zeros(shape)
    dense[tuple(indices.T)] = values
    rows = []
    for node in range(*node_range):
        total = dense[node, 0].sum(axis=0)
        if total[1] < min_weight:
            continue
        found = list(_inequalities(dense[node]))
        turned = (found[i ^ 1] for i in range(len(found)) if dense[(node, *found[i][0][:2])].any())
        gain, what, left, right = _best(turned, total, 1, float(l1), float(l2))
        rows.append((node, *what, gain - complexity, left, right))
    return _table(rows, 1)
