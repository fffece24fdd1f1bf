"""Samples of vectors as sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


def _values(dtype: np.dtype[Any], numbers: Any) -> Any:
    """Numbers in any type; distinct numbers stay distinct where the type has room."""
    array = np.array(numbers)
    if dtype.kind in "OSU":
        out = np.empty(array.size, object)
        out[:] = [b"v%d" % n for n in array.reshape(-1)]
        return out.reshape(array.shape)
    return array.astype(dtype)


@samples("Unique", "UniqueWithCounts")
def repeated(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeated values, in no order."""
    for numbers, tag in (
        ([3, 1, 3, 2, 1, 3], "plain"),
        ([2, 2, 2], "one"),
        ([5, 4, 0], "distinct"),
        (np.zeros(0), "empty"),
    ):
        for kind in (np.int32, np.int64):
            yield Sample([_values(dtype, numbers)], {"out_idx": np.dtype(kind)}, tag, grad=False)


@samples("UniqueV2", "UniqueWithCountsV2")
def repeated_slices(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeated rows and columns, and the vector without an axis."""
    rows = [[1, 2], [3, 1], [1, 2], [0, 1]]
    for numbers, axis, tag in (
        (rows, [0], "rows"),
        (np.transpose(rows), [1], "columns"),
        (np.transpose(rows), [-1], "negative"),
        ([1, 0, 1], [0], "vector"),
        ([1, 0, 1], np.zeros(0), "no-axis"),
        ([[[1, 0]], [[1, 0]], [[0, 1]]], [0], "rank3"),
    ):
        args = [_values(dtype, numbers), np.array(axis, np.int64)]
        yield Sample(args, {}, tag, grad=False)


@samples("ListDiff")
def differences(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Some, all and none of the values left."""
    for x, y, tag in (
        ([1, 2, 3, 1, 0], [2, 0], "plain"),
        ([1, 0], [0, 1, 1], "nothing"),
        ([1, 0, 1], np.zeros(0), "all"),
        (np.zeros(0), [1], "empty"),
    ):
        for kind in (np.int32, np.int64):
            yield Sample(
                [_values(dtype, x), _values(dtype, y)], {"out_idx": np.dtype(kind)}, tag, grad=False
            )


@samples("InvertPermutation")
def permutations(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Short and empty ones."""
    for numbers, tag in (([3, 4, 0, 2, 1], "plain"), ([0], "one"), (np.zeros(0), "empty")):
        yield Sample([np.array(numbers).astype(dtype)], {}, tag, grad=False)


@error_samples("InvertPermutation")
def no_permutations() -> Iterable[ErrorSample]:
    """A number twice, and one too large."""
    for numbers, text in (
        ([1, 1], "1 is duplicated in the input"),
        ([0, 2], "2 is not between 0 and 2"),
    ):
        yield ErrorSample([np.array(numbers, _INT)], {}, "InvalidArgumentError", text, "run")


@error_samples("Unique")
def no_vectors() -> Iterable[ErrorSample]:
    """A matrix."""
    x = np.zeros((2, 2), np.float32)
    yield ErrorSample([x], {}, "ValueError", "Shape must be rank 1 but is rank 2", "build")
    yield ErrorSample([x], {}, "InvalidArgumentError", "unique expects a 1D vector", "run")
