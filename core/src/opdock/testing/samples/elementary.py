"""Samples of the functions of one argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SHAPES = (
    ((3, 4), "plain"), ((), "scalar"), ((0, 3), "empty"), ((2, 1, 3, 2, 2), "rank5"),
    ((70,), "long"),
)  # fmt: skip


def _each(draw: Callable[..., Any], *, grad: bool = True) -> Iterable[Sample]:
    """Every shape, filled by `draw`."""
    for shape, tag in _SHAPES:
        yield Sample([draw(shape)], tag=tag, grad=grad and tag != "empty")


def _special(dtype: np.dtype[Any]) -> Iterable[Sample]:
    """Infinities, NaN, signed zeros and ones, for the real floating types."""
    if dtype.kind not in "iuc":
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]
        yield Sample([np.array(values).astype(dtype)], tag="special", grad=False)


@samples("Neg", "Square", "Sin", "Cos", "Sinh", "Cosh", "Tanh", "Sigmoid", "Asinh", "Atan", "Expm1")
def smooth(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Functions that are smooth everywhere."""
    yield from _each(lambda shape: rng.normal(shape, 0.7))
    yield from _special(dtype)


@samples("Exp")
def exponential(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """From tiny to large results."""
    yield from _each(rng.normal)
    yield from _special(dtype)


@samples("Abs", "Sign")
def kinked(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Away from the kink at 0; the sign of a complex number is not analytic."""
    yield from _each(rng.away_from, grad=dtype.kind != "c")
    yield Sample([np.zeros((2, 2), dtype)], tag="zeros", grad=False)
    yield from _special(dtype)


@samples("Sqrt", "Rsqrt", "Log", "Log1p", "Inv", "Reciprocal")
def positive(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """On the positive side."""
    yield from _each(rng.positive)
    if dtype.kind == "f":
        values = np.array([np.nan, np.inf, 0.0, 0.25, 1.0]).astype(dtype)
        yield Sample([values], tag="special", grad=False)


@samples("Asin", "Acos", "Atanh", "Tan")
def bounded(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Inside (-1, 1)."""
    yield from _each(lambda shape: rng.uniform(shape, -0.8, 0.8))


@samples("Acosh")
def above_one(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Above 1, where the function begins."""
    yield from _each(lambda shape: rng.positive(shape, 1.3, 4.0))


@samples("Round", "Rint", "Floor", "Ceil")
def rounding(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Ties, and everything between."""
    yield from _each(lambda shape: rng.normal(shape, 3.0))
    ties = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])
    if dtype.kind not in "iu":
        yield Sample([ties.astype(dtype)], tag="ties", grad=False)
        yield from _special(dtype)


@samples("IsNan", "IsInf", "IsFinite")
def classes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Numbers of every class."""
    yield from _each(rng.normal)
    yield from _special(dtype)


@samples("InvGrad", "ReciprocalGrad", "SqrtGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad")
def by_result(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A result well away from 0, and a derivative."""
    for shape, tag in _SHAPES:
        inputs = [rng.positive(shape, 0.4, 0.9), rng.normal(shape)]
        yield Sample(inputs, tag=tag, grad=tag != "empty")


@samples("InvGrad", "ReciprocalGrad", "SqrtGrad", "RsqrtGrad")
def at_poles(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """No derivative arrives where the result is a pole, or a root's zero."""
    y, dy = np.array([np.inf, 0.0, 0.5], dtype), np.array([0, 0, 2], dtype)
    yield Sample([y, dy], tag="poles", grad=False)


@error_samples("Sqrt")
def wrong_type() -> Iterable[ErrorSample]:
    """Roots of integers have no type to be in."""
    whole = [np.array([1, 2], np.int32)]
    yield ErrorSample(whole, {}, "TypeError", "not in list of allowed values", "build")
