"""Portable kernels of the sums that boosted trees grow by.

Sums are made in double precision, as TF's are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.dtypes import float64
from opdock.kernels.array_api import device_ints, fails, index_type, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import sum_at
from opdock.kernels.select.signature import NodeSig


def _places(xp: Any, name: str, given: Any, limit: int) -> Any:
    """Numbers below a limit, to count with; InvalidArgumentError for others."""
    if 0 in tuple(given.shape):
        return xp.astype(given, index_type(xp))
    wrong = (given < 0) | (given >= limit)
    if fails(xp, xp.any(wrong)):
        flat = xp.reshape(given, (-1,))
        at = int(xp.argmax(xp.astype(xp.reshape(wrong, (-1,)), xp.int32)))
        raise invalid(f"{name} must be in [0, {limit}), got {int(flat[at])}")
    return xp.astype(given, index_type(xp))


def _doubles(xp: Any, *columns: Any) -> Any:
    return xp.concat([xp.astype(each, xp.float64) for each in columns], axis=1)


@portable("BoostedTreesMakeStatsSummary", computes_in=float64)
def make_stats_summary(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Sums of gradients and hessians by feature, node and bucket."""
    splits, buckets = int(sig.attrs["max_splits"]), int(sig.attrs["num_buckets"])

    def run(nodes: Any, gradients: Any, hessians: Any, *features: Any) -> Any:
        node = _places(xp, "node_ids", nodes, splits)
        stats = _doubles(xp, gradients[:, :1], hessians[:, :1])
        sums = []
        for values in features:
            # Boundaries of quantiles may be more than were asked for. TF adds what lies beyond the
            # last bucket to the next node's first; it belongs to the last, of which none is right.
            last = xp.full_like(values, buckets - 1)
            inside = xp.where(values > last, last, values)
            bucket = _places(xp, "bucketized_features", inside, buckets)
            total = sum_at(xp, stats, node * buckets + bucket, splits * buckets)
            sums.append(xp.reshape(xp.astype(total, xp.float32), (splits, buckets, 2)))
        if not sums:
            device = getattr(gradients, "device", None)
            return xp.zeros((0, splits, buckets, 2), dtype=xp.float32, device=device)
        return xp.stack(sums, axis=0)

    return run


@portable("BoostedTreesAggregateStats", computes_in=float64)
def aggregate_stats(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Sums by node, feature dimension and bucket; the last bucket is that of missing values."""
    splits, buckets = int(sig.attrs["max_splits"]), int(sig.attrs["num_buckets"])

    def run(nodes: Any, gradients: Any, hessians: Any, feature: Any) -> Any:
        node = _places(xp, "node_ids", nodes, splits)
        missing = xp.full_like(feature, buckets)
        bucket = xp.where(feature == -1, missing, feature)
        bucket = _places(xp, "feature", bucket, buckets + 1)
        count, dimensions = feature.shape
        stats = _doubles(xp, gradients, hessians)
        width = stats.shape[1]
        dimension = device_ints(xp, np.arange(dimensions), feature)
        cell = (xp.expand_dims(node, axis=1) * dimensions + dimension) * (buckets + 1) + bucket
        rows = xp.broadcast_to(xp.expand_dims(stats, axis=1), (count, dimensions, width))
        rows = xp.reshape(rows, (count * dimensions, width))
        shape = (splits, dimensions, buckets + 1, width)
        total = sum_at(xp, rows, xp.reshape(cell, (-1,)), splits * dimensions * (buckets + 1))
        return xp.reshape(xp.astype(total, xp.float32), shape)

    return run
