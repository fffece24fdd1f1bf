"""Samples of scattering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
# shape of the output, indices, tag
_CASES: tuple[tuple[Any, Any, str], ...] = (
    ((5,), [[1], [3], [0]], "elements"),
    ((4, 3), [[2], [0]], "rows"),
    ((2, 3), [[0, 1], [1, 2]], "cells"),
    ((2, 3), [[[1, 1]], [[0, 0]]], "nested"),
    ((3,), np.zeros((0, 1)), "none"),
    ((2, 3, 2, 2), [[1, 2], [0, 0]], "rank4"),
)
_REPEATED: tuple[tuple[Any, Any, str], ...] = (
    ((4,), [[1], [1], [3], [1]], "repeated"),
    ((3, 2), [[2], [0], [2]], "repeated-rows"),
)


def _places(indices: Any) -> Any:
    return np.array(indices, _INT)


def _updates(shape: Any, indices: Any) -> tuple[int, ...]:
    places = _places(indices)
    return (*places.shape[:-1], *shape[places.shape[-1] :])


@samples("ScatterNd")
def scattered(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Cells, rows, repeated ones."""
    for shape, indices, tag in (*_CASES, *_REPEATED):
        args = [_places(indices), rng.normal(_updates(shape, indices)), np.array(shape, _INT)]
        yield Sample(args, {}, tag)
    yield Sample(
        [np.array([[1]], np.int64), rng.normal((1,)), np.array([2], np.int64)], {}, "int64"
    )


def _onto(rng: Sampler, cases: Iterable[Any], *, distinct: bool = False) -> Iterator[Sample]:
    for shape, indices, tag in cases:
        wanted = _updates(shape, indices)
        if distinct:
            n = int(np.prod(shape))
            values = rng.distinct((n + int(np.prod(wanted)),))
            old, new = values[:n].reshape(shape), values[n:].reshape(wanted)
        else:
            old, new = rng.normal(shape), rng.normal(wanted)
        yield Sample([old, _places(indices), new], {}, tag)


@samples("TensorScatterUpdate")
def updated(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct places: TF leaves the order of writes open."""
    yield from _onto(rng, _CASES)


@samples("TensorScatterAdd", "TensorScatterSub", "ScatterNdNonAliasingAdd")
def added(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeated places too."""
    yield from _onto(rng, (*_CASES, *_REPEATED))


@samples("TensorScatterMin", "TensorScatterMax")
def extremes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct values: the derivative at a tie is a matter of taste."""
    yield from _onto(rng, (*_CASES, *_REPEATED), distinct=True)


@error_samples("ScatterNd")
def bad_scatters() -> Iterable[ErrorSample]:
    """Places that there are not, updates of another shape."""
    shape = np.array([3], _INT)
    yield ErrorSample(
        [np.array([[3]], _INT), np.zeros(1, np.float32), shape],
        {},
        "InvalidArgumentError",
        r"indices\[0\] = \[3\] does not index into",
        "run",
    )
    yield ErrorSample(
        [np.array([[0], [1]], _INT), np.zeros(3, np.float32), shape],
        {},
        "ValueError",
        "The outer 1 dimensions of indices.shape",
        "build",
    )
    yield ErrorSample(
        [np.array([[0], [1]], _INT), np.zeros(3, np.float32), shape],
        {},
        "InvalidArgumentError",
        "Must have updates.shape",
        "run",
    )


@error_samples("TensorScatterUpdate")
def bad_updates() -> Iterable[ErrorSample]:
    """Updates of another shape."""
    args = [np.zeros((2, 2), np.float32), np.array([[0]], _INT), np.zeros((1, 3), np.float32)]
    yield ErrorSample(args, {}, "ValueError", "The inner 1 dimensions of output.shape", "build")
