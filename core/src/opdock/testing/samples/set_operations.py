"""Samples of rows as sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_OPERATIONS = ("a-b", "b-a", "intersection", "union")
_PAIRS: tuple[tuple[str, Any, Any], ...] = (
    ("plain", [[1, 9, 1], [4, 5, 6]], [[9, 2], [4, 4]]),
    ("rank3", [[[5, 3], [1, 1]], [[2, 7], [0, 0]]], [[[3], [2]], [[7], [1]]]),
    ("disjoint", [[1, 2]], [[3, 4]]),
    ("no-columns", np.zeros((2, 0)), [[1], [2]]),
    ("no-rows", np.zeros((0, 2)), np.zeros((0, 3))),
)


def _values(dtype: np.dtype[Any], numbers: Any) -> Any:
    array = np.array(numbers)
    if dtype.kind in "OSU":
        out = np.empty(array.size, object)
        out[:] = [b"v%d" % n for n in array.reshape(-1)]
        return out.reshape(array.shape)
    return array.astype(dtype)


def _sparse(array: Any) -> list[Any]:
    """A dense array as indices, values and shape; its last value is left out."""
    indices = np.array(list(np.ndindex(*array.shape)), np.int64).reshape(-1, array.ndim)[:-1]
    return [indices, array.reshape(-1)[:-1], np.array(array.shape, np.int64)]


@samples("DenseToDenseSetOperation")
def dense(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeated values, rows that have nothing in common, rows of nothing."""
    for tag, a, b in _PAIRS:
        for operation in _OPERATIONS:
            args = [_values(dtype, a), _values(dtype, b)]
            yield Sample(args, {"set_operation": operation}, f"{tag}-{operation}", grad=False)


@samples("DenseToSparseSetOperation")
def dense_to_sparse(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with a second set that has gaps."""
    for tag, a, b in _PAIRS:
        for operation in _OPERATIONS:
            args = [_values(dtype, a), *_sparse(_values(dtype, b))]
            yield Sample(args, {"set_operation": operation}, f"{tag}-{operation}", grad=False)


@samples("SparseToSparseSetOperation")
def sparse(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both sets with gaps."""
    for tag, a, b in _PAIRS:
        for operation in _OPERATIONS:
            args = [*_sparse(_values(dtype, a)), *_sparse(_values(dtype, b))]
            yield Sample(args, {"set_operation": operation}, f"{tag}-{operation}", grad=False)


@samples("SetSize")
def sizes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows with repeated values and without any."""
    for tag, a, _ in _PAIRS:
        yield Sample(_sparse(_values(dtype, a)), {}, tag, grad=False)


@error_samples("DenseToDenseSetOperation")
def bad_pairs() -> Iterable[ErrorSample]:
    """Vectors, rows that differ in number, an operation that does not exist."""
    one, two = np.zeros((1, 2), np.int32), np.zeros((2, 2), np.int32)
    attrs = {"set_operation": "union"}
    yield ErrorSample(
        [one[0], one[0]], attrs, "ValueError", "Shape must be at least rank 2 but is rank 1",
        "build",
    )  # fmt: skip
    yield ErrorSample(
        [one, two], attrs, "ValueError", "Dimension 0 in both shapes must be equal", "build"
    )
    yield ErrorSample(
        [one, two], attrs, "InvalidArgumentError", r"Mismatched shapes \[1\] vs \[2\]", "run"
    )
    yield ErrorSample(
        [one, one], {"set_operation": "xor"}, "InvalidArgumentError",
        "Invalid set_operation xor", "run",
    )  # fmt: skip


@error_samples("SetSize")
def bad_indices() -> Iterable[ErrorSample]:
    """Indices outside, out of order and twice the same."""
    values, shape = np.zeros(2, np.int32), np.array([2, 2], np.int64)
    for rows, text in (
        ([[0, 0], [2, 0]], r"indices\[1\] = \[2,0\] is out of bounds: need 0 <= index < \[2,2\]"),
        ([[1, 0], [0, 1]], r"indices\[1\] = \[0,1\] is out of order"),
        ([[1, 0], [1, 0]], r"indices\[1\] = \[1,0\] is repeated"),
    ):
        yield ErrorSample(
            [np.array(rows, np.int64), values, shape], {}, "InvalidArgumentError", text, "run"
        )
