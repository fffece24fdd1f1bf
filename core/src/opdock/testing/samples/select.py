"""Samples of selection by condition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Where")
def coordinates(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Zeros among other values."""
    for shape, tag in (
        ((3, 4), "plain"),
        ((6,), "vector"),
        ((), "scalar"),
        ((0, 2), "empty"),
        ((2, 2, 3, 2), "rank4"),
    ):
        values = np.where(rng.bools(shape), rng.positive(shape), np.zeros((), dtype))
        yield Sample([values.astype(dtype)], {}, tag, grad=False)
    yield Sample([np.zeros((2, 2), dtype)], {}, "nothing", grad=False)


@samples("OneHot")
def encodings(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, indices out of range, all index types."""
    values = [rng.normal(()), rng.normal(())]
    for indices, depth, axis, tag in (
        ([0, 2, 1], 3, -1, "plain"),
        ([0, -1, 7], 3, -1, "outside"),
        ([[0, 1], [2, 0]], 3, 1, "middle"),
        ([1, 0], 2, 0, "first"),
        (1, 4, -1, "number"),
        ([], 3, -1, "empty"),
        ([0, 1], 0, -1, "no-depth"),
    ):
        args = [np.array(indices, np.int64), np.array(depth, _INT), *values]
        yield Sample(args, {"axis": axis}, tag, grad=False)
    for kind in (np.uint8, np.int32):
        yield Sample(
            [np.array([1, 0], kind), np.array(2, _INT), *values],
            {},
            np.dtype(kind).name,
            grad=False,
        )


@error_samples("OneHot")
def bad_encodings() -> Iterable[ErrorSample]:
    """A depth that is no number, and a negative one."""
    values = [np.ones((), np.float32), np.zeros((), np.float32)]
    one = np.array([1], np.int64)
    yield ErrorSample(
        [one, np.array([3, 4], _INT), *values],
        {},
        "ValueError",
        "Input must be scalar but has rank 1",
        "build",
    )
    yield ErrorSample(
        [one, np.array(-1, _INT), *values],
        {},
        "InvalidArgumentError",
        "depth must be non-negative, got: -1",
        "run",
    )
