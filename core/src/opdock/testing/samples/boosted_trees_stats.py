"""Samples of sums of gradients by bucket, and of the splits that gain most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_NODES = np.array([1, 0, 2, 1, 1, 0], np.int32)
_FEATURE = np.array([[0, 2], [-1, 1], [2, 2], [1, -1], [0, 0], [2, 1]], np.int32)
_SIZES = {"max_splits": 3, "num_buckets": 3}


def _float(value: float) -> Any:
    return np.array(value, np.float32)


def _statistics(rng: Sampler, logits: int, hessians: int) -> list[Any]:
    """Gradients of any sign and hessians above zero."""
    return [rng.normal((6, logits)), rng.positive((6, hessians))]


@samples("BoostedTreesMakeStatsSummary")
def stats_summary(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One feature and two."""
    rng = Sampler(np.float32, "trees")
    columns = [np.maximum(_FEATURE[:, i], 0) for i in (0, 1)]
    for count in (1, 2):
        inputs = [_NODES, *_statistics(rng, 1, 1), columns[:count]]
        yield Sample(inputs, _SIZES, f"features{count}")
    yield Sample([*inputs[:-1], [columns[0] + 2]], _SIZES, "beyond")


@samples("BoostedTreesAggregateStats")
def aggregated(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One logit and two, with half and with all of the hessian."""
    rng = Sampler(np.float32, "trees")
    for logits, hessians in ((1, 1), (2, 2), (2, 4)):
        inputs = [_NODES, *_statistics(rng, logits, hessians), _FEATURE]
        yield Sample(inputs, _SIZES, f"logits{logits}-hessians{hessians}")


@samples("BoostedTreesSparseAggregateStats")
def sparse_aggregated(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values that are there, and none."""
    rng = Sampler(np.float32, "trees")
    there = np.argwhere(_FEATURE >= 0).astype(np.int32)
    values, shape = _FEATURE[tuple(there.T)], np.array([6, 2], np.int32)
    statistics = _statistics(rng, 1, 1)
    yield Sample([_NODES, *statistics, there, values, shape], _SIZES, "some")
    yield Sample([_NODES, *statistics, there[:0], values[:0], shape], _SIZES, "none")


# Sums of three nodes in two dimensions and three buckets, the last of them for missing values.
_SUMS = np.array([
    [[[0.5, 1], [-1.5, 2], [0.25, 1]], [[-1, 2], [0.5, 1.5], [-0.25, 0.5]]],
    [[[-2, 0.5], [1, 1], [0, 0]], [[-0.75, 1], [-0.25, 0.5], [0, 0]]],
    [[[0, 0.01], [0, 0], [0, 0]], [[0, 0], [0, 0.01], [0, 0]]],
], np.float32)  # fmt: skip


def _numbers(l1: float = 0, l2: float = 0, complexity: float = 0, weight: float = 0) -> list[Any]:
    return [_float(value) for value in (l1, l2, complexity, weight)]


_REGULARIZED = {
    "plain": _numbers(weight=0.1),
    "l1": _numbers(l1=0.25, weight=0.1),
    "l2": _numbers(l2=0.5, complexity=0.125, weight=0.1),
}


@samples("BoostedTreesCalculateBestGainsPerFeature")
def gains_per_feature(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All nodes, one, none."""
    features = [np.ascontiguousarray(_SUMS[:, i]) for i in (0, 1)]
    attrs = {"max_splits": 3}
    for tag, numbers in _REGULARIZED.items():
        yield Sample([np.array([0, 3], np.int32), features, *numbers], attrs, tag)
    one = np.array([1, 2], np.int32)
    yield Sample([one, features[:1], *_numbers()], attrs, "one-node")
    yield Sample([np.array([1, 1], np.int32), features, *_numbers()], attrs, "no-node")


@samples("BoostedTreesCalculateBestFeatureSplit")
def feature_split(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both kinds of splits; two logits."""
    whole = np.array([0, 3], np.int32)
    for kind in ("inequality", "equality"):
        for tag, numbers in _REGULARIZED.items():
            attrs = {"logits_dimension": 1, "split_type": kind}
            yield Sample([whole, _SUMS, *numbers], attrs, f"{kind}-{tag}")
    two = np.stack([_SUMS[:, :, :, 0], -2 * _SUMS[:, ::-1, :, 0]], axis=3)
    diagonal = np.repeat(_SUMS[:, :1, :, 1:] + 1, 2, axis=3).repeat(2, axis=1)
    full = np.stack([diagonal[..., 0], *[diagonal[..., 0] / 4] * 2, diagonal[..., 1]], axis=3)
    for tag, hessians in (("diagonal", diagonal), ("full", full)):
        summary = np.concatenate([two, hessians], axis=3).astype(np.float32)
        attrs = {"logits_dimension": 2}
        yield Sample([whole, summary, *_numbers(l2=0.5)], attrs, f"two-logits-{tag}")


@samples("BoostedTreesSparseCalculateBestFeatureSplit")
def sparse_split(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same sums as a sparse tensor."""
    there = np.argwhere(_SUMS[:2]).astype(np.int32)
    values, shape = _SUMS[tuple(there.T)], np.array(_SUMS.shape, np.int32)
    for tag, numbers in _REGULARIZED.items():
        inputs = [np.array([0, 2], np.int32), there, values, shape, *numbers]
        yield Sample(inputs, {"logits_dimension": 1}, tag)


@error_samples("BoostedTreesMakeStatsSummary")
def beyond() -> Iterable[ErrorSample]:
    """A node and a bucket that are not there."""
    numbers = [np.ones((1, 1), np.float32)] * 2
    zero, four, below = (np.full(1, value, np.int32) for value in (0, 4, -1))
    yield ErrorSample([four, *numbers, [zero]], _SIZES, match=r"node_ids must be in \[0, 3\)")
    yield ErrorSample([zero, *numbers, [below]], _SIZES, match="bucketized_features must be in")


@error_samples("BoostedTreesCalculateBestFeatureSplit")
def odd_hessians() -> Iterable[ErrorSample]:
    """Neither a diagonal nor a matrix."""
    summary = np.ones((1, 1, 2, 5), np.float32)
    inputs = [np.array([0, 1], np.int32), summary, *_numbers()]
    yield ErrorSample(inputs, {"logits_dimension": 2}, match="has 3 hessians for 2 logits")
