"""Samples of ragged tensors by their splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_OUTER = np.array([0, 2, 2, 3], np.int64)
_INNER = np.array([0, 3, 3, 4], np.int64)


@samples("RaggedGather", vary="Tvalues")
def rows(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """One and two ragged dimensions; scalars, vectors and matrices of indices."""
    values = rng.normal((4, 2))
    picked = np.array([2, 0, 2, 1], np.int32)
    yield Sample([[_INNER], values, picked], {"OUTPUT_RAGGED_RANK": 1}, "plain", grad_outputs=(1,))
    yield Sample(
        [[_OUTER, _INNER], values, picked.astype(np.int64)], {"OUTPUT_RAGGED_RANK": 2}, "nested",
        grad_outputs=(2,),
    )  # fmt: skip
    yield Sample(
        [[_INNER.astype(np.int32)], values[:, 0], np.array([[0, 2], [1, 0]], np.int64)],
        {"OUTPUT_RAGGED_RANK": 2}, "matrix", grad=False,
    )  # fmt: skip
    yield Sample([[_INNER], values, np.int32(2)], {"OUTPUT_RAGGED_RANK": 0}, "one", grad=False)
    yield Sample([[_INNER], values, picked[:0]], {"OUTPUT_RAGGED_RANK": 1}, "empty", grad=False)


@samples("RaggedRange")
def ranges(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Up and down, empty ones, scalars for all."""
    dtype = np.dtype(dtype)
    starts, limits = np.array([0, 5, 8, 2], dtype), np.array([3, 5, 5, 9], dtype)
    steps = np.array([1, 2, -1, 3], dtype)
    yield Sample([starts, limits, steps], {}, "plain", grad=False)
    yield Sample([dtype.type(1), limits, dtype.type(2)], {}, "broadcast", grad=False)
    yield Sample([dtype.type(0), dtype.type(4), dtype.type(1)], {}, "one", grad=False)
    yield Sample(
        [starts[:0], limits[:0], dtype.type(1)],
        {"Tsplits": np.dtype(np.int32)},
        "empty",
        grad=False,
    )


@samples("RaggedTensorToSparse")
def cells(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """One and two ragged dimensions, with and without dimensions inside."""
    yield Sample([[_INNER], rng.normal((4,))], {}, "plain", grad_outputs=(1,))
    yield Sample([[_OUTER, _INNER], rng.normal((4,))], {}, "nested", grad_outputs=(1,))
    yield Sample([[_INNER.astype(np.int32)], rng.normal((4, 2))], {}, "inner", grad_outputs=(1,))
    yield Sample([[np.zeros(3, np.int64)], rng.normal((0,))], {}, "empty", grad=False)


@error_samples("RaggedGather")
def bad_rows() -> Iterator[ErrorSample]:
    """An index outside, splits that are none."""
    values, attrs = np.ones(4, np.float32), {"OUTPUT_RAGGED_RANK": 1}
    index = np.array([0, 3], np.int32)
    yield ErrorSample(
        [[_INNER], values, index], attrs, match=r"indices\[1\] = 3 is not in \[0, 3\)"
    )
    yield ErrorSample(
        [[_INNER[::-1].copy()], values, index], attrs, match="must be sorted in ascending order"
    )
    yield ErrorSample([[_INNER * 2], values, index], attrs, match="must not point past values")


@error_samples("RaggedRange")
def bad_ranges() -> Iterator[ErrorSample]:
    """No step, vectors of different lengths."""
    two, one = np.array([0, 1], np.int32), np.int32(1)
    yield ErrorSample([two, two, one * 0], match="Requires delta != 0")
    yield ErrorSample([two, np.array([1, 2, 3], np.int32), one], match="must have the same shape")


@error_samples("RaggedTensorToSparse")
def bad_cells() -> Iterator[ErrorSample]:
    """Splits that do not cover the values."""
    values = np.ones(4, np.float32)
    back = np.array([0, 3, 1, 4], np.int64)
    yield ErrorSample([[back], values], match="must be sorted in ascending order")
    yield ErrorSample([[_INNER], np.ones(5, np.float32)], match="Final value of ragged splits")
    yield ErrorSample([[_INNER[1:]], values], match="First value of ragged splits must be 0")
