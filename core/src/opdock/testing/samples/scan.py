"""Samples of the scans."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _cases(draw: Any) -> Iterable[Sample]:
    for axis in (0, -1):
        for exclusive in (False, True):
            for reverse in (False, True):
                attrs = {"exclusive": exclusive, "reverse": reverse}
                tag = f"axis{axis}{'-exclusive' * exclusive}{'-reverse' * reverse}"
                yield Sample([draw((3, 4)), np.array(axis, np.int32)], attrs, tag)
    yield Sample([draw((5,)), np.array(0, np.int64)], {}, "vector")
    yield Sample([draw((2, 3, 1, 2, 2)), np.array(1, np.int32)], {"exclusive": True}, "rank5")
    yield Sample([draw((2, 0, 3)), np.array(1, np.int32)], {}, "empty", grad=False)


@samples("Cumsum")
def sums(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any numbers."""
    yield from _cases(rng.normal)


@samples("Cumprod")
def products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Away from zero: the gradient divides by the input."""
    yield from _cases(lambda shape: rng.positive(shape, 0.5, 1.5))


@samples("CumulativeLogsumexp")
def logsumexps(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any numbers, large ones included: exp must not overflow."""
    for sample in _cases(rng.normal):
        # The lowest number, which stands for nothing, is too large to difference.
        yield dataclasses.replace(sample, grad=sample.grad and not sample.attrs.get("exclusive"))
    large = np.array([500.0, 501.0, -500.0, 502.0]).astype(dtype)
    yield Sample([large, np.array(0, np.int32)], {}, "large", grad=False)


@error_samples("Cumsum", "Cumprod")
def bad_axes() -> Iterable[ErrorSample]:
    """An axis beyond the rank; an axis that is a vector."""
    data = np.zeros((2, 3), np.float32)
    yield ErrorSample(
        [data, np.array(2, np.int32)],
        {},
        match=r"Expected scan axis in the range \[-2, 2\), but got 2",
    )
    yield ErrorSample(
        [data, np.array([0], np.int32)], {}, match=r"ScanOp: axis must be a scalar, not \[1\]"
    )
