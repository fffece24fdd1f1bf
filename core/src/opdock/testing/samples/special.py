"""Samples of the special functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples
from opdock.testing.samples.arithmetic import pairs

_SHAPES = (((3, 4), "plain"), ((), "scalar"), ((0, 3), "empty"), ((2, 1, 3, 1, 2), "rank5"))


def _each(draw: Any, *, grad: bool = True) -> Iterable[Sample]:
    for shape, tag in _SHAPES:
        yield Sample([draw(shape)], tag=tag, grad=grad and tag != "empty")


@samples("Erf", "Erfc")
def error_functions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The middle, the tails, the ends."""
    yield from _each(rng.normal)
    values = np.array([0.0, 0.5, 1.0, 2.0, 3.0, -3.0, 6.0, np.inf, -np.inf, np.nan])
    yield Sample([values.astype(dtype)], tag="tails", grad=False)


@samples("BesselI0e", "BesselI1e")
def bessel(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both sides of 8, where series change."""
    yield from _each(rng.away_from)
    far = np.array([0.0, 7.5, 8.0, 8.5, -20.0, 100.0]).astype(dtype)
    yield Sample([far], tag="far", grad=False)


@samples("Erfinv")
def inverse_erf(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Inside (-1, 1), the ends, and outside."""
    yield from _each(lambda shape: rng.uniform(shape, -0.9, 0.9))
    yield Sample([np.array([-1.0, 0.0, 1.0, 1.5]).astype(dtype)], tag="ends", grad=False)


@samples("Ndtri")
def quantiles(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Inside (0, 1), the ends, and outside."""
    yield from _each(lambda shape: rng.uniform(shape, 0.1, 0.9))
    yield Sample([np.array([0.0, 0.5, 1.0, -0.5, 1e-4]).astype(dtype)], tag="ends", grad=False)


@samples("Lgamma")
def log_gamma(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Positive numbers, poles, negative fractions, large numbers."""
    yield from _each(rng.positive)
    values = np.array([0.0, -1.0, -2.0, -0.5, -1.5, 1.0, 2.0, 20.0, np.inf, np.nan])
    yield Sample([values.astype(dtype)], tag="poles", grad=False)


@samples("Digamma")
def digamma(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Positive numbers, poles, negative fractions, large numbers; polygamma is never narrow."""
    yield from _each(rng.positive, grad=dtype.itemsize > 2)
    values = np.array([0.0, -1.0, -0.5, -1.25, 1.0, 20.0, np.inf, np.nan])
    yield Sample([values.astype(dtype)], tag="poles", grad=False)


@samples("Igamma", "Igammac")
def incomplete_gamma(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both sides of x = a, and the ends."""
    for sample in pairs(rng.positive, rng.positive):
        smooth = sample.grad and dtype.itemsize >= 4
        yield Sample(sample.inputs, tag=sample.tag, grad=smooth)
    a = np.array([0.5, 5.0, 20.0, 20.0, 1.0, 1.0]).astype(dtype)
    x = np.array([10.0, 1.0, 15.0, 30.0, 0.0, np.inf]).astype(dtype)
    yield Sample([a, x], tag="far", grad=False)
    yield Sample([np.array([-1.0, 1.0]).astype(dtype), np.array([1.0, -1.0]).astype(dtype)],
                 tag="outside", grad=False)  # fmt: skip


@samples("IgammaGradA")
def gamma_slope(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Where neither the function nor its complement vanishes."""
    yield from pairs(rng.positive, rng.positive, grad=False)


@samples("Zeta")
def zeta(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Exponents above 1; TF has no derivative by the exponent."""
    for sample in pairs(lambda s: rng.positive(s, 1.5, 6.0), rng.positive):
        yield dataclasses.replace(sample, grad_inputs=(1,))
    ends = [np.array(v).astype(dtype) for v in ([1.0, 0.5, 2.0, 3.0], [1.0, 1.0, 1.0, 0.25])]
    yield Sample(ends, tag="ends", grad=False)


@samples("Polygamma")
def polygamma(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Whole orders; TF has no derivative by the order."""
    for sample in pairs(lambda s: rng.integers(s, 0, 4), rng.positive):
        yield dataclasses.replace(sample, grad_inputs=(1,))


@samples("Betainc")
def incomplete_beta(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One shape, or scalars beside it; TF has no derivative by the parameters."""

    def x(shape: Any) -> Any:
        return rng.uniform(shape, 0.05, 0.95)

    shapes = {
        "plain": ((3, 4), (3, 4), (3, 4)), "scalars": ((), (), ()), "scalar-a": ((), (5,), (5,)),
        "scalar-x": ((2, 2), (2, 2), ()), "empty": ((0, 2), (0, 2), (0, 2)),
        "rank4": ((2, 1, 2, 2),) * 3,
    }  # fmt: skip
    for tag, (a, b, c) in shapes.items():
        inputs = [rng.positive(a), rng.positive(b), x(c)]
        yield Sample(inputs, tag=tag, grad=tag != "empty", grad_inputs=(2,))
    ends = np.array([0.0, 1.0]).astype(dtype)
    yield Sample([rng.positive((2,)), rng.positive((2,)), ends], tag="ends", grad=False)
