"""Samples of transposition and bands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Transpose", "ConjugateTranspose")
def transpositions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Swaps, rotations, nothing."""
    for shape, perm, tag in (
        ((2, 3), (1, 0), "plain"),
        ((2, 3, 4), (2, 0, 1), "rotation"),
        ((2, 3, 4), (0, 1, 2), "same"),
        ((3,), (0,), "vector"),
        ((), (), "scalar"),
        ((0, 3), (1, 0), "empty"),
        ((1, 2, 3, 4), (0, 3, 1, 2), "rank4"),
        ((2, 1, 3, 2, 2), (4, 2, 0, 3, 1), "rank5"),
    ):
        yield Sample([rng.normal(shape), np.array(perm, _INT)], {}, tag)
    yield Sample([rng.normal((2, 2)), np.array([1, 0], np.int64)], {}, "int64")


@samples("MatrixBandPart")
def bands(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Triangles, bands, wide and tall matrices."""
    for shape, lower, upper, tag in (
        ((4, 4), 1, 1, "band"),
        ((4, 4), -1, 0, "lower"),
        ((4, 4), 0, -1, "upper"),
        ((3, 5), 0, 2, "wide"),
        ((5, 3), 2, 0, "tall"),
        ((2, 3), 2, 3, "all"),
        ((2, 0), 0, 0, "empty"),
        ((2, 2, 3, 3), 1, 0, "rank4"),
    ):
        args = [np.array(lower, np.int64), np.array(upper, np.int64)]
        yield Sample([rng.normal(shape), *args], {}, tag)


@error_samples("MatrixBandPart")
def more_diagonals_than_there_are() -> Iterable[ErrorSample]:
    """No matrix, more rows, more columns."""
    for shape, lower, upper, words in (
        ((3,), 0, 0, "input must be at least 2-dim"),
        ((2, 3), 3, 0, r"number of rows \(2\) got: 3"),
        ((2, 3), 0, 4, r"number of columns \(3\) got: 4"),
    ):
        args = [np.array(lower, np.int64), np.array(upper, np.int64)]
        yield ErrorSample(
            [np.zeros(shape, np.float32), *args], {}, "InvalidArgumentError", words, "run"
        )


@error_samples("Transpose")
def bad_permutations() -> Iterable[ErrorSample]:
    """Too many dimensions, one twice."""
    x = np.zeros((2, 3), np.float32)
    yield ErrorSample(
        [x, np.array([0, 1, 2], _INT)], {}, "ValueError", "Dimension must be 2 but is 3", "build"
    )
    yield ErrorSample(
        [x, np.array([0, 1, 2], _INT)],
        {},
        "InvalidArgumentError",
        "transpose expects a vector of size 2",
        "run",
    )
    yield ErrorSample(
        [x, np.array([0, 0], _INT)], {}, "InvalidArgumentError", "1 is missing", "run"
    )
