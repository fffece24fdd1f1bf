"""Samples of the bias family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("BiasAdd")
def bias_add(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Channels last and channels second, from the least rank up."""
    for shape, tag in (((3, 4), "plain"), ((2, 3, 2, 4), "image"), ((2, 1, 2, 2, 3), "rank5")):
        yield Sample([rng.normal(shape), rng.normal(shape[-1:])], {"data_format": "NHWC"}, tag)
    for shape, tag in (((2, 3, 4), "first"), ((2, 3, 2, 2), "first-image")):
        yield Sample([rng.normal(shape), rng.normal(shape[1:2])], {"data_format": "NCHW"}, tag)
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
    draw = lambda shape: rng.integers(shape, 0, 3)
    yield Sample([draw((3, 4))], {"data_format": "NHWC"}, "plain")
    yield Sample([draw((2, 3, 2, 4))], {"data_format": "NHWC"}, "image")
    yield Sample([draw((2, 3, 4))], {"data_format": "NCHW"}, "first")
    yield Sample([draw((2, 3, 2, 2, 2))], {"data_format": "NCHW"}, "first-volume")
    yield Sample([draw((0, 3))], {"data_format": "NHWC"}, "empty", grad=False)


@error_samples("BiasAdd")
def bias_sizes() -> Iterable[ErrorSample]:
    """One bias per channel, and a matrix at least."""
    yield ErrorSample(
        [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)], exception="ValueError",
        match="Dimensions must be equal, but are 3 and 4", phase="build", tag="size",
    )  # fmt: skip
    yield ErrorSample(
        [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)],
        match="must be equal|broadcast", phase="run", tag="size-run",
    )  # fmt: skip
    yield ErrorSample(
        [np.zeros((3,), np.float32), np.zeros(3, np.float32)], exception="ValueError",
        match="Shape must be at least rank 2 but is rank 1", phase="build", tag="rank",
    )  # fmt: skip
