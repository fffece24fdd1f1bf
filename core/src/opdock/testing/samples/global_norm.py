"""Samples of batch normalization by given statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.dtypes import FLOATS
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_IMAGES = (2, 3, 2, 4)


def _attrs(scaled: bool) -> dict[str, Any]:
    return {"variance_epsilon": 0.01, "scale_after_normalization": scaled}


def _tolerance(dtype: np.dtype[Any]) -> dict[str, Any]:
    if dtype.itemsize > 2:
        return {}
    wide = 0.02 if dtype.name == "float16" else 0.15
    return {"tol": (wide, wide), "tol_reason": "sums of products in half precision"}


def _statistics(rng: Sampler) -> list[Any]:
    return [rng.normal((4,)), rng.positive((4,))]


@samples("BatchNormWithGlobalNormalization", types=FLOATS)
def norms(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """With the scale and without."""
    for scaled in (True, False):
        inputs = [rng.normal(_IMAGES), *_statistics(rng), rng.normal((4,)), rng.normal((4,))]
        yield Sample(inputs, _attrs(scaled), f"scaled-{scaled}", **_tolerance(dtype))


@samples("BatchNormWithGlobalNormalizationGrad", types=FLOATS)
def norm_grads(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """With the scale and without."""
    for scaled in (True, False):
        inputs = [rng.normal(_IMAGES), *_statistics(rng), rng.normal((4,)), rng.normal(_IMAGES)]
        yield Sample(inputs, _attrs(scaled), f"scaled-{scaled}", grad=False, **_tolerance(dtype))


@error_samples("BatchNormWithGlobalNormalization")
def bad_channels() -> Iterator[ErrorSample]:
    """Statistics of another number of channels."""
    images, four, three = (np.ones(s, np.float32) for s in (_IMAGES, (4,), (3,)))
    inputs = [images, four, three, four, four]
    yield ErrorSample(inputs, _attrs(True), "ValueError", "must be equal", "build")
