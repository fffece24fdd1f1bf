"""Samples of gathers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Gather", vary="Tparams")
def rows(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Indices of different ranks, repeated ones too."""
    for shape, indices, tag in (
        ((4, 3), [2, 0, 2], "plain"),
        ((4,), [[1], [3]], "matrix"),
        ((4, 2), 1, "number"),
        ((3, 2), [], "none"),
        ((5, 0), [1, 4], "empty"),
        ((3, 2, 2, 2), [0, 2], "rank4"),
    ):
        yield Sample([rng.normal(shape), np.array(indices, _INT)], {}, tag)
    yield Sample([rng.normal((4, 2)), np.array([3, 3], np.int64)], {}, "int64")


@samples("GatherV2", vary="Tparams")
def along(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, and batches."""
    for shape, indices, axis, batch, tag in (
        ((4, 3), [2, 0, 2], 0, 0, "rows"),
        ((3, 4), [[1, 3], [0, 1]], 1, 0, "columns"),
        ((2, 3, 4), [2, 0], -2, 0, "middle"),
        ((4,), 2, 0, 0, "number"),
        ((2, 3), [], 1, 0, "none"),
        ((0, 3), [1], 1, 0, "empty"),
        ((2, 3), [[0, 2], [1, 1]], 1, 1, "batch"),
        ((2, 3, 2), [[0], [2]], 1, -1, "batch-negative"),
        ((2, 3, 4), [[0, 3], [2, 1]], 2, 1, "batch-outer"),
        ((2, 2, 3, 2), [[[0, 2]] * 2] * 2, 2, 2, "batch2"),
    ):
        args = [rng.normal(shape), np.array(indices, _INT), np.array(axis, _INT)]
        yield Sample(args, {"batch_dims": batch}, tag)


@samples("GatherNd", vary="Tparams")
def coordinates(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Elements, rows, everything."""
    for shape, indices, tag in (
        ((2, 3), [[0, 1], [1, 2]], "elements"),
        ((2, 3), [[1], [0], [1]], "rows"),
        ((2, 3), [[[1, 1]], [[0, 0]]], "nested"),
        ((2, 3), np.zeros((2, 0)), "whole"),
        ((4,), [2], "number"),
        ((2, 3), np.zeros((0, 2)), "none"),
        ((2, 2, 3, 2), [[0, 1, 2], [1, 1, 0]], "rank4"),
    ):
        yield Sample([rng.normal(shape), np.array(indices, _INT)], {}, tag)


@error_samples("Gather")
def bad_rows() -> Iterable[ErrorSample]:
    """Indices beyond the end and below zero."""
    x = np.zeros((3,), np.float32)
    yield ErrorSample(
        [x, np.array([7], _INT)],
        {},
        "InvalidArgumentError",
        r"indices\[0\] = 7 is not in \[0, 3\)",
        "run",
    )
    yield ErrorSample(
        [x, np.array([0, -1], _INT)],
        {},
        "InvalidArgumentError",
        r"indices\[1\] = -1 is not in \[0, 3\)",
        "run",
    )


@error_samples("GatherV2")
def bad_gathers() -> Iterable[ErrorSample]:
    """Indices and axes out of range."""
    x, two = np.zeros((2, 3), np.float32), np.array(2, _INT)
    one = np.array(1, _INT)
    yield ErrorSample(
        [x, np.array([[3]], _INT), one],
        {},
        "InvalidArgumentError",
        r"indices\[0,0\] = 3 is not in \[0, 3\)",
        "run",
    )
    yield ErrorSample(
        [x, np.array([0], _INT), two],
        {},
        "ValueError",
        "Shape must be at least rank 3 but is rank 2",
        "build",
    )
    yield ErrorSample(
        [x, np.array([0], _INT), two],
        {},
        "InvalidArgumentError",
        r"Expected axis in the range \[-2, 2\), but got 2",
        "run",
    )


@error_samples("GatherNd")
def bad_coordinates() -> Iterable[ErrorSample]:
    """Coordinates out of range, and too many of them."""
    x = np.zeros((2, 3), np.float32)
    yield ErrorSample(
        [x, np.array([[0, 1], [1, 3]], _INT)],
        {},
        "InvalidArgumentError",
        r"indices\[1\] = \[1,3\] does not index into param shape \[2,3\]",
        "run",
    )
    yield ErrorSample(
        [np.zeros((3, 0), np.float32), np.array([[1]], _INT)],
        {},
        "InvalidArgumentError",
        r"Requested more than 0 entries, but params is empty.  Params shape: \[3,0\]",
        "run",
    )
    yield ErrorSample(
        [x, np.zeros((1, 3), _INT)],
        {},
        "ValueError",
        r"indices.shape\[-1\] must be <= params.rank",
        "build",
    )
