"""Samples of splitting by label and stitching."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("DynamicPartition")
def partitions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Parts of different sizes, empty ones, labels of higher rank."""
    for shape, labels, n, tag in (
        ((5,), [0, 1, 0, 2, 1], 3, "plain"),
        ((4, 2), [1, 1, 1, 1], 2, "one-sided"),
        ((2, 3, 2), [[0, 1, 1], [1, 0, 0]], 2, "matrix"),
        ((), 1, 2, "number"),
        ((0, 2), [], 2, "empty"),
        ((3, 2), [0, 0, 0], 1, "one"),
        ((3, 2, 1, 2), [2, 0, 2], 3, "rank4"),
    ):
        args = [rng.normal(shape), np.array(labels, _INT)]
        yield Sample(args, {"num_partitions": n}, tag)


@samples("DynamicStitch", "ParallelDynamicStitch")
def stitches(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Interleaved rows, indices of higher rank."""
    for indices, tail, tag in (
        (([0, 2], [1, 3]), (), "plain"),
        (([2], [[0, 1], [4, 3]]), (2,), "ranks"),
        ((1, 0), (3,), "numbers"),
        (([0, 1, 2],), (2,), "one"),
        (([], [0, 1]), (), "with-empty"),
        (([0], [1]), (2, 1, 2), "rank4"),
    ):
        places = [np.array(i, _INT) for i in indices]
        data = [rng.normal((*p.shape, *tail)) for p in places]
        yield Sample([places, data], {}, tag)


@samples("DynamicStitch")
def overwritten(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows that are written twice: the later part wins."""
    places = [np.array([0, 1, 2], _INT), np.array([2, 0], _INT)]
    yield Sample([places, [rng.normal((3, 2)), rng.normal((2, 2))]], {}, "repeated", grad=False)


@error_samples("DynamicPartition")
def bad_labels() -> Iterable[ErrorSample]:
    """A label beyond the parts, labels of another shape."""
    args = [np.zeros(3, np.float32), np.array([0, 2, 1], _INT)]
    yield ErrorSample(
        args,
        {"num_partitions": 2},
        "InvalidArgumentError",
        r"partitions\[1\] = 2 is not in \[0, 2\)",
        "run",
    )
    args = [np.zeros(3, np.float32), np.array([0, 1], _INT)]
    yield ErrorSample(args, {"num_partitions": 2}, "ValueError", "must start alike", "build")


@error_samples("DynamicStitch")
def bad_stitches() -> Iterable[ErrorSample]:
    """Data that does not start with the shape of its indices."""
    args = [[np.array([0, 1], _INT)], [np.zeros((3,), np.float32)]]
    yield ErrorSample(
        args,
        {},
        "InvalidArgumentError",
        r"data\[0\].shape = \[3\] does not start with indices\[0\].shape = \[2\]",
        "run",
    )
