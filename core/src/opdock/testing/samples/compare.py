"""Samples of comparisons, logic and choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples
from opdock.testing.samples.arithmetic import pairs

_SHAPES = (((3, 4), "plain"), ((), "scalar"), ((0, 2), "empty"), ((2, 1, 2, 1, 3), "rank5"))


def _few(rng: Sampler, shape: Any) -> Any:
    """So few values that many are equal."""
    return rng.integers(shape, 0, 3)


@samples("Less", "LessEqual", "Greater", "GreaterEqual")
def orders(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Equal and unequal numbers, and NaN."""
    yield from pairs(lambda s: _few(rng, s), lambda s: _few(rng, s), grad=False)
    if dtype.kind not in "iu":
        values = np.array([np.nan, 1.0, np.inf, -np.inf]).astype(dtype)
        yield Sample([values[:, None], values[None, :]], tag="special", grad=False)


@samples("Equal", "NotEqual")
def equalities(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Equal and unequal values of every kind."""
    yield from pairs(lambda s: _few(rng, s), lambda s: _few(rng, s), grad=False)
    left = _few(rng, (2, 3))
    yield Sample([left, left.copy()], tag="same", grad=False)
    loose = {"incompatible_shape_error": False}
    yield Sample([left, _few(rng, (3,))], loose, tag="loose", grad=False)
    yield Sample([left, _few(rng, (4,))], loose, tag="loose-apart", grad=False)


@samples("ApproximateEqual")
def nearly(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Differences well inside and well outside the tolerance."""
    x = _few(rng, (3, 4))
    yield Sample([x, x.copy()], tag="same", grad=False)
    yield Sample([x, _few(rng, (3, 4))], {"tolerance": 0.5}, tag="wide", grad=False)
    yield Sample([_few(rng, ()), _few(rng, ())], tag="scalars", grad=False)
    yield Sample([_few(rng, (0, 2)), _few(rng, (0, 2))], tag="empty", grad=False)


@samples("LogicalAnd", "LogicalOr")
def logic(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Truth values in every combination of shapes."""
    yield from pairs(rng.bools, rng.bools, grad=False)


@samples("LogicalNot")
def opposite(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Truth values."""
    for shape, tag in _SHAPES:
        yield Sample([rng.bools(shape)], tag=tag, grad=False)


@samples("Select")
def choices(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A condition for each element, for each row, for all."""
    for condition, shape, tag in (
        ((3, 4), (3, 4), "plain"),
        ((3,), (3, 4), "rows"),
        ((2,), (2, 3, 1, 2), "rows-rank4"),
        ((), (3, 4), "all"),
        ((), (), "scalar"),
        ((0, 2), (0, 2), "empty"),
        ((2, 1, 2, 1, 2), (2, 1, 2, 1, 2), "rank5"),
    ):
        inputs = [rng.bools(condition), rng.normal(shape), rng.normal(shape)]
        yield Sample(inputs, tag=tag, grad=tag != "empty")


@samples("SelectV2")
def broadcast_choices(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Everything broadcasts."""
    for condition, then, otherwise, tag in (
        ((3, 4), (3, 4), (3, 4), "plain"),
        ((4,), (3, 4), (3, 4), "columns"),
        ((3, 1), (4,), (), "outer"),
        ((), (), (), "scalar"),
        ((2, 0), (1,), (2, 1), "empty"),
        ((2, 1, 2, 1, 1), (1, 2), (2, 1, 1, 3, 1), "rank5"),
    ):
        inputs = [rng.bools(condition), rng.normal(then), rng.normal(otherwise)]
        yield Sample(inputs, tag=tag, grad=tag != "empty")


@error_samples("Select")
def unfit_condition() -> Iterable[ErrorSample]:
    """A condition that is neither of the shape of the values nor a vector over their rows."""
    condition = np.zeros(4, np.bool_)
    values = [np.zeros((3, 4), np.float32)] * 2
    yield ErrorSample([condition, *values], {}, "ValueError", "must be equal", "build")
    yield ErrorSample([condition, *values], {}, "InvalidArgumentError", "", "run")


@error_samples("Less", "Equal")
def unfit_shapes() -> Iterable[ErrorSample]:
    """Shapes that do not broadcast."""
    inputs = [np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)]
    yield ErrorSample(inputs, {}, "ValueError", "must be equal, but are 3 and 4", "build")
    yield ErrorSample(inputs, {}, "InvalidArgumentError", "", "run")
