"""Samples of the ops of order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


def _rows(dtype: np.dtype[Any], rng: Sampler) -> Iterable[tuple[Any, int, str, bool]]:
    yield rng.distinct((2, 5)), 2, "plain", True
    yield rng.distinct((6,)), 6, "all", True
    yield rng.distinct((4,)), 0, "none", False
    yield np.array([[1, 3, 3, 0, 3, 1]]).astype(dtype), 4, "ties", False
    yield np.zeros((2, 0), dtype), 0, "empty", False
    yield rng.distinct((2, 1, 3, 4)), 3, "rank4", True
    long = (np.arange(600) * 7 % 100).astype(dtype).reshape(2, 300)
    yield long, 5, "few-of-many", False


@samples("TopKV2")
def largest(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Few, all and none of the elements; ties."""
    for x, k, tag, grad in _rows(dtype, rng):
        yield Sample([x, np.array(k, _INT)], {"sorted": True}, tag, grad=grad)


@samples("TopK")
def old_largest(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with the count as an attribute."""
    for x, k, tag, grad in _rows(dtype, rng):
        yield Sample([x], {"k": k, "sorted": True}, tag, grad=grad)


@samples("NthElement")
def nth_elements(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """From both ends; ties; several dimensions."""
    for n, reverse in ((0, False), (3, False), (1, True)):
        inputs = [rng.distinct((2, 5)), np.array(n, _INT)]
        yield Sample(inputs, {"reverse": reverse}, f"{n}-{reverse}", grad_inputs=(0,))
    ties = np.array([[1, 3, 3, 0]]).astype(dtype)
    yield Sample([ties, np.array(2, _INT)], {}, "ties", grad=False)
    yield Sample([rng.distinct((2, 1, 3)), np.array(1, _INT)], {}, "rank3", grad=False)
    yield Sample([np.zeros((0, 2), dtype), np.array(1, _INT)], {}, "empty", grad=False)


@error_samples("NthElement")
def no_such_place() -> Iterable[ErrorSample]:
    """Places that no row has."""
    x = np.zeros(3, np.float32)
    yield ErrorSample(
        [x, np.array(3, _INT)], {}, "ValueError", "last dimension > n = 3 but is 3", "build"
    )
    yield ErrorSample(
        [x, np.array(-1, _INT)], {}, "InvalidArgumentError", "Need n >= 0, got -1", "run"
    )


@samples("LowerBound", "UpperBound")
def bounds(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values inside, outside, and equal to elements."""
    rows = np.array([[0, 1, 1], [0, 0, 1]]).astype(dtype)
    values = np.array([[1, 0], [0, 1]]).astype(dtype)
    for kind in (np.int32, np.int64):
        yield Sample([rows, values], {"out_type": np.dtype(kind)}, "plain", grad=False)
    wide = [np.sort(rng.integers((3, 8), 0, 9), axis=-1), rng.integers((3, 4), 0, 9)]
    yield Sample(wide, {}, "wide", grad=False)
    yield Sample([rows, values[:, :0]], {}, "empty", grad=False)


@error_samples("TopKV2")
def too_many() -> Iterable[ErrorSample]:
    """More elements than a row has, and a negative number."""
    x = np.zeros(3, np.float32)
    yield ErrorSample(
        [x, np.array(5, _INT)],
        {},
        "ValueError",
        "input must have last dimension >= k = 5 but is 3",
        "build",
    )
    yield ErrorSample(
        [x, np.array(5, _INT)],
        {},
        "InvalidArgumentError",
        "at least k columns. Had 3, needed 5",
        "run",
    )
    yield ErrorSample(
        [x, np.array(-1, _INT)], {}, "InvalidArgumentError", "Need k >= 0, got -1", "run"
    )
