"""Samples of the ops that make one tensor of several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_JOINS: tuple[tuple[Any, int, str], ...] = (
    (((2, 3), (1, 3)), 0, "rows"),
    (((2, 3), (2, 1), (2, 2)), 1, "columns"),
    (((2, 3), (2, 3)), -1, "last"),
    (((2,), (3,)), 0, "vectors"),
    (((0, 3), (2, 3)), 0, "with-empty"),
    (((0, 3), (0, 3)), 0, "empty"),
    (((2, 1, 3, 2, 2), (2, 2, 3, 2, 2)), -4, "rank5"),
)


@samples("ConcatV2")
def concats(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, empty parts, many parts."""
    for shapes, axis, tag in _JOINS:
        yield Sample([[rng.normal(s) for s in shapes], np.array(axis, _INT)], {}, tag)
    many = [rng.normal((1, 2)) for _ in range(20)]
    yield Sample([many, np.array(0, np.int64)], {}, "many")


@samples("Concat")
def old_concats(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, empty parts."""
    for shapes, axis, tag in _JOINS:
        yield Sample([np.array(axis, _INT), [rng.normal(s) for s in shapes]], {}, tag)


@samples("ParallelConcat")
def parallel_concats(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shapes that are known: the op demands it."""
    for tail, n, tag in (((3,), 2, "plain"), ((), 3, "numbers"), ((2, 2), 1, "one")):
        parts = [rng.normal((1, *tail)) for _ in range(n)]
        yield Sample([parts], {"shape": (n, *tail)}, tag, grad=False)


@samples("ConcatOffset")
def offsets(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis."""
    shapes = [np.array(s, _INT) for s in ((2, 3, 4), (2, 1, 4), (2, 0, 4))]
    yield Sample([np.array(1, _INT), shapes], {}, "middle", grad=False)
    yield Sample([np.array(-2, _INT), shapes], {}, "negative", grad=False)


@samples("Pack")
def packs(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, numbers, one value."""
    for shape, n, axis, tag in (
        ((2, 3), 3, 0, "first"),
        ((2, 3), 2, 1, "middle"),
        ((2, 3), 2, -1, "last"),
        ((), 3, 0, "numbers"),
        ((2,), 1, 0, "one"),
        ((0, 2), 2, 1, "empty"),
        ((2, 1, 2, 2), 2, -3, "rank4"),
    ):
        yield Sample([[rng.normal(shape) for _ in range(n)]], {"axis": axis}, tag)


@error_samples("ConcatV2")
def unlike_parts() -> Iterable[ErrorSample]:
    """Parts that do not fit."""
    zero = np.array(0, _INT)
    ranks = [[np.zeros((2, 3), np.float32), np.zeros((3,), np.float32)], zero]
    sizes = [[np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32)], zero]
    yield ErrorSample(ranks, {}, "ValueError", "Shape must be rank 2 but is rank 1", "build")
    yield ErrorSample(
        ranks, {}, "InvalidArgumentError", r"shape\[0\] = \[2,3\] vs. shape\[1\] = \[3\]", "run"
    )
    yield ErrorSample(sizes, {}, "ValueError", "Dimension 1 in both shapes must be equal", "build")
    yield ErrorSample(sizes, {}, "InvalidArgumentError", "Dimensions of inputs should match", "run")


@error_samples("ConcatOffset")
def unlike_sizes() -> Iterable[ErrorSample]:
    """Shapes of several ranks; an axis that they do not have."""
    two, three = np.array([2, 3], _INT), np.array([2, 3, 4], _INT)
    yield ErrorSample([np.array(0, _INT), [two, three]], {}, tag="ranks")
    yield ErrorSample([np.array(2, _INT), [two, two]], {}, tag="axis")


@error_samples("Pack")
def unlike_values() -> Iterable[ErrorSample]:
    """Values of different shapes."""
    args = [[np.zeros(2, np.float32), np.zeros(3, np.float32)]]
    yield ErrorSample(
        args, {}, "ValueError", "Dimension 0 in both shapes must be equal, but are 2 and 3", "build"
    )
    yield ErrorSample(
        args,
        {},
        "InvalidArgumentError",
        r"values\[0\].shape = \[2\] != values\[1\].shape = \[3\]",
        "run",
    )
