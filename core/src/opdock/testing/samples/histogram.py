"""Samples of the counting ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_VALUES = np.array([[1, 1, 2], [4, 7, 0]], np.int32)


@samples("Bincount")
def counts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without weights; numbers beyond the last bin are dropped."""
    nothing = np.zeros((0,), dtype)
    for size in (8, 5, 0):
        yield Sample([_VALUES, np.array(size, np.int32), nothing], {}, f"size{size}", grad=False)
    yield Sample([_VALUES, np.array(8, np.int32), rng.normal((2, 3))], {}, "weights", grad=False)
    empty = np.zeros((0,), np.int32)
    yield Sample([empty, np.array(3, np.int32), nothing], {}, "empty", grad=False)


@samples("HistogramFixedWidth")
def histograms(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values inside, on the edges and outside the range."""
    values = np.array([-1, 0, 3, 4, 5, 10, 12, 100]).astype(dtype)
    limits = np.array([0, 10]).astype(dtype)
    for output in (np.int32, np.int64):
        yield Sample(
            [values, limits, np.array(5, np.int32)],
            {"dtype": np.dtype(output)},
            "edges",
            grad=False,
        )
    yield Sample([values[:0], limits, np.array(3, np.int32)], {}, "empty", grad=False)
    yield Sample([values.reshape(2, 2, 2), limits, np.array(1, np.int32)], {}, "rank3", grad=False)


@error_samples("Bincount")
def bad_counts() -> Iterable[ErrorSample]:
    """Negative numbers."""
    yield ErrorSample(
        [np.array([-1], np.int32), np.array(3, np.int32), np.zeros((0,), np.float32)],
        {},
        match=r"Input arr must be non-negative!",
    )


@error_samples("HistogramFixedWidth")
def bad_ranges() -> Iterable[ErrorSample]:
    """An empty range, no bins."""
    values, nbins = np.zeros((3,), np.float32), np.array(4, np.int32)
    yield ErrorSample(
        [values, np.array([1, 1], np.float32), nbins],
        {},
        match=r"value_range should satisfy value_range\[0\] < value_range\[1\]",
    )
    yield ErrorSample(
        [values, np.array([0, 1], np.float32), np.array(0, np.int32)], {}, match="nbins"
    )
