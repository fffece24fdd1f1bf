"""Kernels of the sums that trees grow by, and of the splits that gain most.

Sums are made in double and gains in single precision, as TF's are, so that the same split wins.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.linalg

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["larger", "table", "weights_and_gains"]

Array = npt.NDArray[Any]

table = KernelTable()

_TOLERANCE: Final = np.float32(1e-15)
_LOWEST: Final = np.finfo(np.float32).min
_LEFT, _RIGHT, _EQUAL = (
    b"INEQUALITY_DEFAULT_LEFT", b"INEQUALITY_DEFAULT_RIGHT", b"EQUALITY_DEFAULT_RIGHT",
)  # fmt: skip


# ---------------------------------------------------------------- sums
def _check_indices(name: str, given: Array, limit: int) -> None:
    wrong = given[(given < 0) | (given >= limit)]
    if wrong.size:
        raise checks.invalid(f"{name} must be in [0, {limit}), got {int(wrong.flat[0])}")


@table.binder("BoostedTreesSparseAggregateStats")
def sparse_aggregate_stats(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """Sums by node, feature dimension and bucket of a sparse feature, as a sparse tensor."""
    splits, buckets = int(sig.attrs["max_splits"]), int(sig.attrs["num_buckets"])

    def run(
        nodes: Array, gradients: Array, hessians: Array, indices: Array, values: Array, shape: Array
    ) -> tuple[Array, Array, Array]:
        _check_indices("node_ids", nodes, splits)
        _check_indices("feature_values", values, buckets + 1)
        examples, dimensions = len(gradients), int(shape[1])
        _check_indices("feature_indices[:, 0]", indices[:, 0], examples)
        _check_indices("feature_indices[:, 1]", indices[:, 1], dimensions)
        places = np.full((examples, dimensions), buckets, np.int64)
        places[indices[:, 0], indices[:, 1]] = values
        cells = (nodes.astype(np.int64)[:, None] * dimensions + np.arange(dimensions)) * (
            buckets + 1
        ) + places
        stats = np.concatenate([gradients, hessians], axis=1)
        found, where = np.unique(cells, return_inverse=True)
        sums = np.zeros((len(found), stats.shape[1]), np.float32)
        np.add.at(sums, where.reshape(-1), np.repeat(stats, dimensions, axis=0))
        cell = np.unravel_index(found, (splits, dimensions, buckets + 1))
        out = np.empty((len(found), stats.shape[1], 4), np.int32)
        out[..., :3] = np.stack(cell, axis=1)[:, None]
        out[..., 3] = np.arange(stats.shape[1])
        full = np.array([splits, dimensions, buckets + 1, stats.shape[1]], np.int32)
        return out.reshape(-1, 4), sums.reshape(-1), full

    return run


# ---------------------------------------------------------------- what a leaf is worth
def weights_and_gains(gradients: Array, hessians: Array, l1: Any, l2: Any) -> tuple[Array, Array]:
    """The weights of leaves, and what they gain.

    Args:
        gradients: sums of gradients, a row of logits for each leaf.
        hessians: sums of hessians: as many, or all of their matrix.
        l1: the penalty on the weights' sizes; of one logit alone.
        l2: the penalty on their squares.
    """
    l1, l2 = np.float32(l1), np.float32(l2)
    logits = gradients.shape[1]
    if logits == 1:
        return _single(gradients, hessians, l1, l2)
    if hessians.shape[1] == logits:
        diagonal = hessians + l2
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = -(np.float32(1) / diagonal) * gradients
        for row in np.flatnonzero((diagonal == 0).any(axis=1)):
            weights[row] = _solved(np.diag(diagonal[row]), gradients[row])
    else:
        matrices = hessians.reshape(-1, logits, logits).swapaxes(1, 2)
        regular = matrices + l2 * np.eye(logits, dtype=np.float32)
        weights = np.stack([_solved(h, g) for h, g in zip(regular, gradients, strict=True)])
    gains: Array = -(gradients * weights).sum(axis=1, dtype=np.float32)
    return weights, gains


def _single(g: Array, h: Array, l1: np.float32, l2: np.float32) -> tuple[Array, Array]:
    """Of one logit: the weight that minimizes (h + l2) w² / 2 + g w + l1 |w|."""
    shrunk = np.where(g > l1, g - l1, np.where(g < -l1, g + l1, np.float32(0))) if l1 > 0 else g
    divisor = h + l2
    usable = divisor > np.float32(1e-15)
    weights = np.where(usable, -shrunk / np.where(usable, divisor, np.float32(1)), np.float32(0))
    return weights, (-shrunk * weights)[:, 0]


def _solved(matrix: Array, g: Array) -> Array:
    """`-g / matrix` by QR with pivots: where the matrix is singular, some weights are zero."""
    q, r, order = scipy.linalg.qr(matrix, pivoting=True)
    sizes = np.abs(np.diag(r))
    limit = sizes.max(initial=0) * len(g) * np.finfo(np.float32).eps
    rank = int(np.count_nonzero(sizes > limit))
    weights = np.zeros_like(g)
    solved = scipy.linalg.solve_triangular(r[:rank, :rank], (q.T @ g)[:rank]) if rank else []
    weights[order[:rank]] = solved
    return -weights


def larger(one: Any, other: Any) -> bool:
    """Whether a gain is larger than another by more than TF takes for none."""
    return bool(one - other >= _TOLERANCE)


def _first_best(gains: Array) -> int | None:
    """The first of the largest gains; None if none is a number."""
    usable = np.where(np.isnan(gains), -np.inf, gains)
    top = usable.max(initial=-np.inf)
    if not top > _LOWEST:
        return None
    return int(np.flatnonzero(usable >= top - _TOLERANCE)[0])


# ---------------------------------------------------------------- the best splits
def _split_gains(
    left: Array, right: Array, logits: int, l1: Array, l2: Array
) -> tuple[Array, Array, Array]:
    """The gains of candidates and what they add on the left and on the right.

    Args:
        left: statistics of what goes left, a row for each candidate.
        right: statistics of what goes right.
        logits: how many of the statistics are gradients.
    """
    to_left, gain_left = weights_and_gains(left[:, :logits], left[:, logits:], l1, l2)
    to_right, gain_right = weights_and_gains(right[:, :logits], right[:, logits:], l1, l2)
    return gain_left + gain_right, to_left, to_right


class _Splits:
    """Splits that were found, node by node."""

    def __init__(self, logits: int) -> None:
        self._logits = logits
        self._rows: list[tuple[int, np.float32, int, int, Array, Array, bytes]] = []

    def add(
        self, node: int, gain: Any, dimension: int, threshold: int, left: Array, right: Array,
        kind: bytes,
    ) -> None:  # fmt: skip
        """Adds a node's best split."""
        self._rows.append((node, gain, dimension, threshold, left, right, kind))

    def outputs(self) -> tuple[Array, ...]:
        """The op's outputs."""
        nodes, gains, dimensions, thresholds, left, right, kinds = (
            zip(*self._rows, strict=True) if self._rows else ((),) * 7
        )
        names = np.empty(len(kinds), object)
        names[:] = kinds
        return (
            np.array(nodes, np.int32), np.array(gains, np.float32),
            np.array(dimensions, np.int32), np.array(thresholds, np.int32),
            np.array(left, np.float32).reshape(-1, self._logits),
            np.array(right, np.float32).reshape(-1, self._logits), names,
        )  # fmt: skip


def _nodes_of(node_range: Array, limit: int) -> range:
    first, last = int(node_range[0]), int(node_range[1])
    if not 0 <= first <= last <= limit:
        raise checks.invalid(f"node_id_range must be within [0, {limit}], got [{first}, {last}]")
    return range(first, last)


@table.kernel("BoostedTreesCalculateBestGainsPerFeature")
def best_gains(ctx: Any, node_range: Array, *summaries_and_numbers: Array) -> tuple[Array, ...]:
    """The best split of each node by each feature."""
    *summaries, l1, l2, complexity, min_weight = summaries_and_numbers
    found: list[tuple[Array, ...]] = []
    for summary in summaries:
        splits = _Splits(1)
        for node in _nodes_of(node_range, len(summary)):
            sums = np.cumsum(summary[node], axis=0, dtype=np.float32)
            total = sums[-1:]
            if total[0, 1] < min_weight:
                continue
            _, parent = weights_and_gains(total[:, :1], total[:, 1:], l1, l2)
            gains, left, right = _split_gains(sums, total - sums, 1, l1, l2)
            best = _first_best(gains)
            if best is not None:
                gain = gains[best] - parent[0] - complexity
                splits.add(node, gain, 0, best, left[best], right[best], _LEFT)
        nodes, of_nodes, _, thresholds, to_left, to_right, _ = splits.outputs()
        found.append((nodes, of_nodes, thresholds, to_left, to_right))
    return tuple(itertools.chain.from_iterable(zip(*found, strict=True)))


@table.binder("BoostedTreesCalculateBestFeatureSplit")
def best_split(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """The best split of each node by one feature of several dimensions."""
    logits, kind = int(sig.attrs["logits_dimension"]), sig.attrs["split_type"]
    candidates = _equalities if kind in ("equality", b"equality") else _inequalities

    def run(
        node_range: Array, summary: Array, l1: Array, l2: Array, complexity: Array,
        min_weight: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        hessians = summary.shape[3] - logits
        if hessians not in (logits, logits * logits):
            raise checks.invalid(
                f"stats_summary has {hessians} hessians for {logits} logits, expected {logits} or "
                f"{logits * logits}"
            )
        splits = _Splits(logits)
        for node in _nodes_of(node_range, len(summary)):
            stats = summary[node]
            total = stats[0].sum(axis=0, dtype=np.float32)[None]
            if np.linalg.norm(total[0, logits:]) < min_weight:
                continue
            _, parent = weights_and_gains(total[:, :logits], total[:, logits:], l1, l2)
            left, whole, kinds = candidates(stats, total)
            gains, to_left, to_right = _split_gains(left, whole - left, logits, l1, l2)
            best = _first_best(gains)
            if best is None:
                continue
            dimension, bucket = divmod(best // len(kinds), stats.shape[1] - 1)
            gain = gains[best] - parent[0] - complexity
            which = kinds[best % len(kinds)]
            splits.add(node, gain, dimension, bucket, to_left[best], to_right[best], which)
        return splits.outputs()

    return run


def _inequalities(stats: Array, total: Array) -> tuple[Array, Array, tuple[bytes, ...]]:
    """What goes left up to each bucket, with what is missing and without; and all there is."""
    sums = np.cumsum(stats, axis=1, dtype=np.float32)
    below = sums[:, :-1]
    left = np.stack([below + stats[:, -1:], below], axis=2)
    whole = np.broadcast_to(sums[:, -1][:, None, None], left.shape)
    width = stats.shape[2]
    return left.reshape(-1, width), whole.reshape(-1, width), (_LEFT, _RIGHT)


def _equalities(stats: Array, total: Array) -> tuple[Array, Array, tuple[bytes, ...]]:
    """What goes left of each bucket alone; and all there is."""
    return stats[:, :-1].reshape(-1, stats.shape[2]), total, (_EQUAL,)


@table.kernel("BoostedTreesSparseCalculateBestFeatureSplit")
def sparse_best_split(
    ctx: Any, node_range: Array, indices: Array, values: Array, shape: Array, l1: Array,
    l2: Array, complexity: Array, min_weight: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The best split of each node by one sparse feature, of one logit."""
    missing, width, splits = int(shape[2]) - 1, int(shape[3]), _Splits(1)
    for name, column, limit in zip(
        ("node", "feature", "bucket", "stat"), indices.T, shape, strict=True
    ):
        _check_indices(f"stats_summary_indices of a {name}", column, int(limit))
    # One row for each node, dimension and bucket that there is, in this order.
    cells, where = np.unique(indices[:, :3], axis=0, return_inverse=True)
    stats = np.zeros((len(cells), width), np.float32)
    stats[where.reshape(-1), indices[:, 3]] = values
    for node in np.unique(cells[:, 0]):
        mine = cells[:, 0] == node
        split = _best_of_cells(cells[mine, 1:], stats[mine], missing, l1, l2, min_weight)
        if split is not None:
            gain, dimension, bucket, left, right, kind = split
            splits.add(int(node), gain - complexity, dimension, bucket, left, right, kind)
    return splits.outputs()


def _best_of_cells(
    cells: Array, stats: Array, missing: int, l1: Array, l2: Array, min_weight: Array
) -> tuple[Any, int, int, Array, Array, bytes] | None:
    """The gain over the node's own, dimension, bucket, contributions and kind of the best split."""
    dimensions = np.unique(cells[:, 0])
    first = stats[cells[:, 0] == dimensions[0]]
    total = np.cumsum(first, axis=0, dtype=np.float32)[-1:]
    if total[0, 1] < min_weight:
        return None
    _, parent = weights_and_gains(total[:, :1], total[:, 1:], l1, l2)
    lefts, rights, places = [], [], []
    for dimension in dimensions:
        mine = cells[:, 0] == dimension
        known = cells[mine, 1] != missing
        default = stats[mine][~known].sum(axis=0, dtype=np.float32)
        below = np.cumsum(stats[mine][known], axis=0, dtype=np.float32)
        # In TF's order, for what is left of large sums is all rounding.
        lefts.append(np.stack([below, below + default], axis=1))
        rights.append(np.stack([total - below, total - default - below], axis=1))
        places += [(int(dimension), int(bucket)) for bucket in cells[mine, 1][known]]
    left, right = (np.concatenate(each).reshape(-1, stats.shape[1]) for each in (lefts, rights))
    gains, to_left, to_right = _split_gains(left, right, 1, l1, l2)
    best = _first_best(gains)
    if best is None:
        return None
    dimension, bucket = places[best // 2]
    kind = (_RIGHT, _LEFT)[best % 2]
    return gains[best] - parent[0], dimension, bucket, to_left[best], to_right[best], kind
