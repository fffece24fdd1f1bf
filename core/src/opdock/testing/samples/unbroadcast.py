"""Samples of shapes of gradients of what broadcasts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


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
