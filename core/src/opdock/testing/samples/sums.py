"""Samples of sums of several tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("AddN")
def sums(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Lists of one, two and five."""
    for count in (1, 2, 5):
        yield Sample([[rng.normal((3, 4)) for _ in range(count)]], tag=f"of-{count}")
    yield Sample([[rng.normal(()) for _ in range(3)]], tag="scalars")
    yield Sample([[rng.normal((2, 0)) for _ in range(3)]], tag="empty", grad=False)
    yield Sample([[rng.normal((2, 1, 2, 3)) for _ in range(3)]], tag="rank4")


@samples("AccumulateNV2")
def accumulated(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with the shape stated."""
    for shape in ((3, 4), (), (2, 0), (2, 1, 2, 3)):
        inputs = [[rng.normal(shape) for _ in range(3)]]
        tag = "x".join(str(d) for d in shape) or "scalars"
        yield Sample(inputs, {"shape": shape}, tag, grad=0 not in shape)


@samples("Cross")
def crosses(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows of three."""
    for shape, tag in (
        ((4, 3), "plain"), ((3,), "vector"), ((0, 3), "empty"), ((2, 1, 2, 3), "rank4"),
    ):  # fmt: skip
        inputs = [rng.integers(shape, 0, 5), rng.integers(shape, 0, 5)]
        yield Sample(inputs, tag=tag, grad=0 not in shape)


@error_samples("AddN")
def unequal_shapes() -> Iterable[ErrorSample]:
    """Sums of a list do not broadcast."""
    inputs = [[np.zeros(2, np.float32), np.zeros(3, np.float32)]]
    yield ErrorSample(inputs, {}, "ValueError", "must be equal", "build")
    yield ErrorSample(inputs, {}, "InvalidArgumentError", "", "run")
