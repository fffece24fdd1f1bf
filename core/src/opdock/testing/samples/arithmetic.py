"""Samples of arithmetic on two tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_PAIRS = (
    ((3, 4), (3, 4), "plain"),
    ((3, 4), (4,), "row"),
    ((3, 1), (1, 4), "outer"),
    ((), (2, 3), "scalar-left"),
    ((2, 3), (), "scalar-right"),
    ((), (), "scalars"),
    ((0, 3), (3,), "empty"),
    ((2, 1, 3, 1, 2), (1, 2, 1, 2, 2), "rank5"),
    ((1, 1), (3,), "grow"),
)
Draw = Callable[..., Any]


def pairs(first: Draw, second: Draw, *, grad: bool = True) -> Iterable[Sample]:
    """Two operands in every combination of shapes."""
    for left, right, tag in _PAIRS:
        yield Sample([first(left), second(right)], tag=tag, grad=grad and tag != "empty")


@samples("Add", "AddV2", "Sub", "Mul", "SquaredDifference")
def rings(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any two operands."""
    yield from pairs(rng.normal, rng.normal)


@samples("MulNoNan")
def products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Operands away from 0, and an infinity times 0."""
    yield from pairs(rng.normal, rng.positive)
    left = np.array([np.inf, np.nan, 3.0]).astype(dtype)
    yield Sample([left, np.zeros(3, dtype)], tag="zero", grad=False)


@samples("Div", "RealDiv", "TruncateDiv", "FloorDiv", "FloorMod", "TruncateMod", "Mod")
def quotients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Divisors away from 0, of both signs where the type has them."""

    # Odd sixteenths over halves: no quotient is whole, and none of a narrow type rounds to one.
    def dividend(shape: Any) -> Any:
        whole = rng.integers(shape, -40, 41)
        if dtype.kind in "iu":
            return whole
        return ((2 * whole + 1) / dtype.type(16)).astype(dtype)

    def divisor(shape: Any) -> Any:
        whole = rng.positive(shape, 1, 5)
        return whole if dtype.kind in "iu" else (np.rint(whole.real * 2) / 2 + 0.5).astype(dtype)

    smooth = dtype.kind == "c" or dtype.itemsize >= 4
    yield from pairs(dividend, divisor, grad=smooth)
    if dtype.kind != "u":
        signs = np.array([7, -7, 7, -7, 6, -6]).astype(dtype)
        others = np.array([2, 2, -2, -2, 3, -3]).astype(dtype)
        yield Sample([signs, others], tag="signs", grad=False)
    if dtype.kind in "iu":
        yield Sample([np.zeros(0, dtype), np.zeros((), dtype)], tag="nothing by zero", grad=False)


@samples("DivNoNan")
def safe_quotients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Divisors away from 0, and at 0."""
    yield from pairs(rng.normal, rng.positive)
    yield Sample([rng.normal((3,)), np.zeros(3, dtype)], tag="zero", grad=False)


@samples("Pow")
def powers(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Positive bases; whole exponents from 0 for integers."""
    exponent: Draw = rng.normal
    if dtype.kind in "iu":
        exponent = lambda shape: rng.integers(shape, 0, 4)
    yield from pairs(rng.positive, exponent)
    negative = np.array([-2, -1, 3]).astype(dtype)
    yield Sample([negative, np.array([2, 3, 0]).astype(dtype)], tag="negative-base", grad=False)


@samples("Maximum", "Minimum")
def extremes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct operands: the derivative at a tie is a matter of taste."""

    def whole(shape: Any) -> Any:
        return np.rint(rng.distinct(shape, 1.0)).astype(dtype)

    def between(shape: Any) -> Any:
        half = 0 if dtype.kind in "iu" else 0.5
        return (whole(shape) + dtype.type(half)).astype(dtype)

    yield from pairs(whole, between)


@samples("Xlogy", "Xdivy")
def zero_first(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A second operand with a logarithm, and 0 against 0."""
    yield from pairs(rng.positive, rng.positive)
    yield Sample([np.zeros(3, dtype), np.array([0, 1, 2]).astype(dtype)], tag="zero", grad=False)


@samples("Atan2")
def angles(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Points away from the origin and from the cut."""
    yield from pairs(rng.normal, rng.positive)
    yield Sample([rng.normal((6,)), -rng.positive((6,))], tag="left-half", grad=False)


@samples("NextAfter")
def neighbours(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Up, down, and not at all."""
    # Steps between neighbours of float32 are too large for differences.
    yield from pairs(rng.normal, rng.normal, grad=dtype == np.float64)
    same = rng.normal((3,))
    yield Sample([same, same.copy()], tag="equal", grad=False)


@error_samples("AddV2", "Mul", "Maximum")
def mismatched() -> Iterable[ErrorSample]:
    """Shapes that do not broadcast, known early and late."""
    left, right = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
    yield ErrorSample([left, right], {}, "ValueError", "must be equal, but are 3 and 4", "build")
    yield ErrorSample([left, right], {}, "InvalidArgumentError", "", "run")


@error_samples("FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod", "Div")
def division_by_zero() -> Iterable[ErrorSample]:
    """Integers cannot be divided by 0."""
    one, zero = np.array([1, 2], np.int32), np.array([1, 0], np.int32)
    yield ErrorSample([one, zero], {}, "InvalidArgumentError", "[Ii]nteger division by zero", "run")


@error_samples("Pow")
def negative_power() -> Iterable[ErrorSample]:
    """Integers cannot be raised to negative powers."""
    base, power = np.array([2, 3], np.int32), np.array([1, -1], np.int32)
    yield ErrorSample([base, power], {}, "InvalidArgumentError", "negative integer powers", "run")
