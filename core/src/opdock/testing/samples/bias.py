"""Samples of the bias family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("BiasAdd")
def bias_add(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Channels last and channels second, from the least rank up."""
    for last in ((3, 4), (2, 3, 2, 4), (2, 1, 2, 2, 3)):
        attrs, tag = {"data_format": "NHWC"}, f"last-{len(last)}"
        yield Sample([rng.normal(last), rng.normal(last[-1:])], attrs, tag)
    for second in ((2, 3, 4), (2, 3, 2, 2)):
        attrs, tag = {"data_format": "NCHW"}, f"second-{len(second)}"
        yield Sample([rng.normal(second), rng.normal(second[1:2])], attrs, tag)
    yield Sample([rng.normal((0, 3)), rng.normal((3,))], tag="empty", grad=False)


@samples("BiasAddV1")
def bias_add_v1(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Channels are always last."""
    for shape, tag in (((3, 4), "plain"), ((2, 3, 2, 4), "image")):
        yield Sample([rng.normal(shape), rng.normal(shape[-1:])], tag=tag)
    yield Sample([rng.normal((0, 3)), rng.normal((3,))], tag="empty", grad=False)


@samples("BiasAddGrad")
def bias_add_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Small whole numbers: sums of narrow types must not overflow differently."""
    for last in ((3, 4), (2, 3, 2, 4), (0, 3)):
        attrs, tag = {"data_format": "NHWC"}, "last-" + "x".join(map(str, last))
        yield Sample([rng.integers(last, 0, 3)], attrs, tag, grad=0 not in last)
    for second in ((2, 3, 4), (2, 3, 2, 2, 2)):
        attrs, tag = {"data_format": "NCHW"}, f"second-{len(second)}"
        yield Sample([rng.integers(second, 0, 3)], attrs, tag)


@error_samples("BiasAdd")
def bias_sizes() -> Iterable[ErrorSample]:
    """One bias per channel, and a matrix at least."""
    yield ErrorSample(
        [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)], exception="ValueError",
        match="Dimensions must be equal, but are 3 and 4", phase="build", tag="size",
    )  # fmt: skip
    yield ErrorSample(
        [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)],
        match="must be equal|broadcast|Incompatible shapes", phase="run", tag="size-run",
    )  # fmt: skip
    yield ErrorSample(
        [np.zeros((3,), np.float32), np.zeros(3, np.float32)], exception="ValueError",
        match="Shape must be at least rank 2 but is rank 1", phase="build", tag="rank",
    )  # fmt: skip
