"""Samples of the ops that cut a tensor into several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Split")
def equal_parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, one part, empty parts."""
    for shape, axis, n, tag in (
        ((4, 6), 0, 2, "rows"),
        ((4, 6), 1, 3, "columns"),
        ((4, 6), -1, 1, "one"),
        ((6,), 0, 6, "vector"),
        ((2, 0), 1, 2, "empty"),
        ((2, 3, 4, 2), -2, 2, "rank4"),
    ):
        yield Sample([np.array(axis, _INT), rng.normal(shape)], {"num_split": n}, tag)


@samples("SplitV")
def given_parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Lengths given, left to be found, zero."""
    for shape, sizes, axis, tag in (
        ((5, 4), [1, 4], 0, "rows"),
        ((5, 4), [2, -1, 1], -2, "inferred"),
        ((5, 4), [0, 4, 0], 1, "zeros"),
        ((3,), [3], 0, "one"),
        ((0, 2), [1, 1], 1, "empty"),
        ((2, 2, 5, 2), [3, 2], 2, "rank4"),
    ):
        args = [rng.normal(shape), np.array(sizes, _INT), np.array(axis, _INT)]
        yield Sample(args, {"num_split": len(sizes)}, tag)


@samples("Unpack")
def slices(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, one slice, empty slices."""
    for shape, axis, tag in (
        ((3, 4), 0, "rows"),
        ((3, 4), 1, "columns"),
        ((2, 3, 4), -2, "middle"),
        ((3,), 0, "vector"),
        ((1, 3), 0, "one"),
        ((2, 0), 0, "empty"),
        ((2, 2, 3, 2), -1, "rank4"),
    ):
        yield Sample([rng.normal(shape)], {"num": shape[axis], "axis": axis}, tag)


@error_samples("Split")
def uneven() -> Iterable[ErrorSample]:
    """A length that does not divide."""
    args = [np.array(0, _INT), np.zeros(5, np.float32)]
    yield ErrorSample(
        args, {"num_split": 2}, "ValueError", "evenly divisible by 2 but is 5", "build"
    )
    yield ErrorSample(
        args,
        {"num_split": 2},
        "InvalidArgumentError",
        r"split_dim 0 \(size = 5\) and num_split 2",
        "run",
    )


@error_samples("SplitV")
def wrong_sum() -> Iterable[ErrorSample]:
    """Lengths that do not add up."""
    args = [np.zeros(5, np.float32), np.array([1, 3], _INT), np.array(0, _INT)]
    yield ErrorSample(
        args,
        {"num_split": 2},
        "ValueError",
        r"can't split axis of size 5 into pieces of size \[1,3\]",
        "build",
    )
    yield ErrorSample(args, {"num_split": 2}, "InvalidArgumentError", "Got: 4, size 5", "run")
    args = [np.zeros(5, np.float32), np.array([1, 3, 1], _INT), np.array(0, _INT)]
    text = "same elements as outputs got 1 -D and 3 elements"
    yield ErrorSample(args, {"num_split": 2}, "InvalidArgumentError", text, "run", "count")


@error_samples("Unpack")
def wrong_count() -> Iterable[ErrorSample]:
    """Another number of slices."""
    args, attrs = [np.zeros(3, np.float32)], {"num": 2, "axis": 0}
    yield ErrorSample(args, attrs, "ValueError", "Dimension must be 2 but is 3", "build")
    text = r"Input shape axis 0 must equal 2, got shape \[3\]"
    yield ErrorSample(args, attrs, "InvalidArgumentError", text, "run")
