"""Samples of regions and of nearest pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SNAKE = [[1, 1, 1, 0], [0, 0, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1]]
_VALUES = [[2, 2, 3], [0, 3, 3], [2, 0, 2]]


@samples("ImageConnectedComponents")
def regions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Regions that meet after a detour, that touch others of another value, of several images."""
    for shape, values, tag in (
        ((1, 4, 4), _SNAKE, "detour"),
        ((1, 3, 3), _VALUES, "values"),
        ((2, 4, 2), _SNAKE, "images"),
        ((1, 1, 1), 1, "pixel"),
        ((2, 0, 3), [], "empty"),
    ):
        numbers = np.array(values).reshape(shape)
        if dtype == np.object_:
            image = np.array([b"", b"a", b"b", b"c"], object)[numbers.astype(int)]
        else:
            image = numbers.astype(dtype)
        yield Sample([image], {}, tag)
    yield Sample([rng.integers((2, 5, 6), 0, 2)], {}, "any")


@samples("BipartiteMatch")
def pairs(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """More rows, more columns, fewer pairs than could be, rows that do not count."""
    draw = np.random.Generator(np.random.Philox(7))
    for shape, rows, most in (
        ((3, 5), -1, -1), ((5, 3), -1, 0), ((4, 4), 2, -1), ((4, 4), -1, 2), ((0, 3), -1, -1),
    ):  # fmt: skip
        distances = draw.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
        tag = f"{shape[0]}x{shape[1]}-{rows}-{most}"
        yield Sample([distances, np.float32(rows)], {"top_k": most}, tag)


@error_samples("ImageConnectedComponents")
def bad_regions() -> Iterable[ErrorSample]:
    """One image that is no batch."""
    yield ErrorSample([np.zeros((2, 2), np.int32)], {}, match="Input images must have rank 3")


@error_samples("BipartiteMatch")
def bad_pairs() -> Iterable[ErrorSample]:
    """More rows than there are, no matrix, two numbers of rows."""
    distances, all_rows = np.zeros((2, 2), np.float32), np.float32(-1)
    yield ErrorSample([distances, np.float32(3)], {}, match="There should be at least 3 rows")
    yield ErrorSample([distances, np.zeros(2, np.float32)], {}, match="with 1 element, but got 2")
    yield ErrorSample([distances[0], all_rows], {}, match="should be 2-dimensional")
