"""Samples of clipping, and of the axes that a broadcast repeats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SHAPES = (((3, 4), "plain"), ((), "scalar"), ((0, 2), "empty"), ((2, 1, 2, 1, 3), "rank5"))


@samples("ClipByValue")
def clipping(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Limits for all and for each element; no value on a limit."""
    low, high = np.asarray(1.1).astype(dtype), np.asarray(3.1).astype(dtype)
    for shape, tag in _SHAPES:
        yield Sample([rng.distinct(shape), low, high], tag=tag, grad=tag != "empty")
    t = rng.distinct((3, 4))
    limits = [np.full((3, 4), v).astype(dtype) for v in (0.6, 2.6)]
    yield Sample([t, *limits], tag="each")
    yield Sample([t, limits[0], high], tag="mixed")


@samples("BroadcastGradientArgs")
def repeated(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Pairs of shapes."""
    for first, second in (
        ((2, 3, 5), (2, 3, 5)), ((2, 3, 5), (1,)), ((2, 3, 5), (5,)), ((2, 1, 5), (3, 1)),
        ((), (2, 3)), ((), ()), ((1, 4), (3, 1)), ((0, 3), (3,)),
    ):  # fmt: skip
        shapes = [np.array(s, dtype).reshape(-1) for s in (first, second)]
        yield Sample(shapes, tag=f"{list(first)}-{list(second)}".replace(" ", ""), grad=False)


@error_samples("BroadcastGradientArgs")
def unfit() -> Iterable[ErrorSample]:
    """Shapes that do not broadcast."""
    shapes = [np.array([2, 3], np.int32), np.array([2, 4], np.int32)]
    yield ErrorSample(shapes, {}, "InvalidArgumentError", "Incompatible shapes", "run")
