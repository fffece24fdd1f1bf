"""Samples of the reductions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


def _cases(draw: Any, *, empty: bool = True) -> Iterable[Sample]:
    """The ways to name axes, over arrays that `draw(shape)` makes."""
    for axes, tag in (([0], "first"), ([1], "last"), ([-1, 0], "both"), ([], "no-axes")):
        for keep in (False, True):
            attrs = {"keep_dims": keep}
            yield Sample([draw((3, 4)), np.array(axes, _INT)], attrs, f"{tag}{'-kept' * keep}")
    yield Sample([draw((3, 4)), np.array(-2, _INT)], {"keep_dims": False}, "scalar-axis")
    yield Sample([draw(()), np.zeros((0,), _INT)], {"keep_dims": False}, "scalar")
    yield Sample([draw((2, 3, 1, 2, 4)), np.array([1, 3], np.int64)], {"keep_dims": False}, "rank5")
    yield Sample([draw((2, 3, 2, 5)), np.array([0, 1, 2], _INT)], {"keep_dims": True}, "channels")
    yield Sample([draw((67, 33)), np.array([1], _INT)], {"keep_dims": False}, "rows", grad=False)
    yield Sample([draw((2, 0, 3)), np.array([2], _INT)], {"keep_dims": False}, "empty", grad=False)
    if empty:
        yield Sample(
            [draw((2, 0)), np.array([1], _INT)], {"keep_dims": False}, "of-nothing", grad=False
        )


@samples("Sum", "EuclideanNorm")
def sums(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Small numbers, so that narrow types do not overflow much."""
    yield from _cases(lambda shape: rng.uniform(shape, 0.5, 1.5))


@samples("Mean")
def means(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The mean of nothing is NaN, which integers lack."""
    yield from _cases(rng.normal, empty=dtype.kind not in "iu")


@samples("Prod")
def products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Factors near one, and a zero among them."""
    for sample in _cases(lambda shape: rng.positive(shape, 0.7, 1.4)):
        if sample.tag != "rows":
            yield sample
    yield Sample(
        [np.array([[1, 0, 2], [0, 3, 0]]).astype(dtype), np.array([1], _INT)],
        {"keep_dims": False},
        "zeros",
        grad=False,
    )


@samples("Max", "Min")
def extremes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct numbers: the derivative at a tie is a matter of taste."""
    for sample in _cases(rng.distinct, empty=dtype.kind not in "iu"):
        if dtype.itemsize > 1 or sample.inputs[0].size < 100:
            yield sample
    if dtype.kind not in "iu":
        special = np.array([[1, np.nan, 3], [-np.inf, np.inf, 0]]).astype(dtype)
        yield Sample([special, np.array([1], _INT)], {"keep_dims": False}, "nan-inf", grad=False)


@samples("All", "Any")
def truths(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Coins."""
    yield from _cases(rng.bools)


@error_samples("Sum", "Mean", "Max")
def bad_axes() -> Iterable[ErrorSample]:
    """An axis beyond the rank, at build and at run time."""
    data = np.zeros((2, 3), np.float32)
    attrs = {"keep_dims": False}
    yield ErrorSample(
        [data, np.array([2], _INT)],
        attrs,
        "ValueError",
        r"Invalid reduction dimension 2 for input with 2 dimensions",
        "build",
    )
    yield ErrorSample([data, np.array([5], _INT)], attrs, match=r"Invalid reduction dimension")
