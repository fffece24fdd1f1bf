"""Samples of buckets and packed bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("Bucketize")
def bucketize(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Numbers below, on and above boundaries; none of either."""
    x = np.array([[-5, 0, 2], [3, 10, 8]]).astype(dtype)
    yield Sample([x], {"boundaries": [0.0, 3.0, 8.0]}, "plain")
    yield Sample([x], {"boundaries": [0.0, 3.0, 3.0, 8.5]}, "equal")
    yield Sample([x], {"boundaries": []}, "none")
    yield Sample([x[:0]], {"boundaries": [1.0]}, "empty")
    yield Sample([x[0, 0]], {"boundaries": [1.0]}, "scalar")


@samples("CompareAndBitpack")
def compare_and_bitpack(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One byte and several; a threshold that some numbers equal."""
    numbers = np.arange(48).reshape(2, 24) * 7 % 11
    for shape in ((8,), (2, 24), (2, 3, 8), (0, 8)):
        x = np.resize(numbers, shape).astype(dtype)
        yield Sample([x, np.array(5).astype(dtype)], {}, f"rank{len(shape)}-{shape[0]}")


@error_samples("Bucketize")
def unsorted() -> Iterable[ErrorSample]:
    """Boundaries in no order."""
    attrs = {"boundaries": [0.0, 8.0, 3.0]}
    yield ErrorSample([np.zeros(3, np.float32)], attrs, match="Expected sorted boundaries")


@error_samples("CompareAndBitpack")
def no_whole_bytes() -> Iterable[ErrorSample]:
    """Rows of no whole bytes."""
    inputs = [np.zeros(9, np.float32), np.float32(0)]
    yield ErrorSample(inputs, {}, "ValueError", "evenly divisible by 8 but is 9", "build")
