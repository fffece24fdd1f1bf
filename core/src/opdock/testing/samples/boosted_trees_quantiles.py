"""Samples of quantile summaries and of buckets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

# Whole numbers: sums of weights are exact, so no entry hangs on a last bit.
_VALUES = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], np.float32)


@samples("BoostedTreesMakeQuantileSummaries")
def summaries(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One weight for all, weights of which some are zero, several features, none."""
    epsilon, one = np.float32(0.01), np.ones(1, np.float32)
    weights = np.array([2, 0, 1, 3, 1, 1, -1, 2, 1, 1, 4, 1], np.float32)
    yield Sample([[_VALUES], one, epsilon], {}, "one-weight")
    yield Sample([[_VALUES, -_VALUES], weights, epsilon], {}, "weights")
    yield Sample([[_VALUES[:0]], one, epsilon], {}, "no-values")


@samples("BoostedTreesBucketize")
def buckets(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values below, on, between and beyond boundaries; no boundaries."""
    limits, few = np.array([1, 3, 5.5], np.float32), np.array([4], np.float32)
    yield Sample([[_VALUES], [limits]], {}, "one")
    yield Sample([[_VALUES, _VALUES - 4], [limits, few]], {}, "two")
    yield Sample([[_VALUES], [limits[:0]]], {}, "no-boundaries")


@error_samples("BoostedTreesMakeQuantileSummaries")
def misfits() -> Iterable[ErrorSample]:
    """Too few weights; no epsilon."""
    short = [[_VALUES], np.ones(3, np.float32), np.float32(0.1)]
    yield ErrorSample(short, {}, match="Weights should be a single value or same size as features")
    exact = [[_VALUES], np.ones(1, np.float32), np.float32(0)]
    yield ErrorSample(exact, {}, match=r"epsilon must be in \(0, 1\)")


@error_samples("BoostedTreesBucketize")
def no_vector() -> Iterable[ErrorSample]:
    """Boundaries in a matrix."""
    inputs = [[_VALUES], [np.ones((2, 2), np.float32)]]
    yield ErrorSample(inputs, {}, match="Buckets should be flat vectors")
