"""Samples of the reductions of ranges of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_OVERLAPPING = np.array([[0, 1], [0, 3], [1, 1], [2, 1], [1, 99], [7, 9]], np.int32)


def _axis(value: int) -> np.ndarray[Any, Any]:
    return np.array(value, np.int64)


def _cases(draw: Any) -> Iterable[Sample]:
    yield Sample([draw((4,)), _OVERLAPPING, _axis(0)], {}, "vector", grad=False)
    yield Sample([draw((4, 3)), _OVERLAPPING.astype(np.int64), _axis(0)], {}, "rows", grad=False)
    yield Sample([draw((2, 4, 3)), _OVERLAPPING, _axis(1)], {}, "middle", grad=False)
    neighbours = np.array([0, 0, 2, 5], np.int32)
    yield Sample([draw((2, 4)), neighbours, _axis(1)], {}, "neighbours", grad=False)
    yield Sample([draw((2, 3)), neighbours[:0], _axis(0)], {}, "none", grad=False)
    yield Sample([draw((0, 3)), _OVERLAPPING, _axis(0)], {}, "empty", grad=False)


@samples("ReduceSliceSum", "ReduceSliceMax", "ReduceSliceMin")
def ranges(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Ranges that overlap, are empty, and end beyond the rows."""
    yield from _cases(rng.normal)


@samples("ReduceSliceProd")
def products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same, of factors near one."""
    yield from _cases(lambda shape: rng.positive(shape, 0.7, 1.4))


@error_samples("ReduceSliceSum", "ReduceSliceProd", "ReduceSliceMax", "ReduceSliceMin")
def bad_ranges() -> Iterable[ErrorSample]:
    """No pairs, no such axis."""
    data, triples = np.zeros((3, 2), np.float32), np.zeros((2, 3), np.int32)
    yield ErrorSample([data, triples, _axis(0)], {}, match="Dimension must be 2 but is 3")
    yield ErrorSample([data, triples[:, :2], _axis(2)], {}, match="axis 2 is not one")
