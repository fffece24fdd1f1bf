"""Samples of pools over windows of different sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_RATIO = [1.0, 1.5, 1.4, 1.0]
_DRAWN: dict[str, Any] = {"deterministic": True, "seed": 5, "seed2": 7}


@samples("FractionalMaxPool", "FractionalAvgPool")
def pools(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both kinds of windows, with and without overlap; a ratio that divides the size."""
    for even in (False, True):
        for overlapping in (False, True):
            attrs = {"pooling_ratio": _RATIO, "pseudo_random": even, "overlapping": overlapping}
            yield Sample([rng.distinct((2, 9, 7, 2))], {**attrs, **_DRAWN},
                         f"{even}-{overlapping}", grad_outputs=(0,))  # fmt: skip
    attrs = {"pooling_ratio": [1.0, 2.0, 3.0, 1.0], **_DRAWN}
    yield Sample([rng.distinct((1, 8, 9, 1))], attrs, "whole", grad_outputs=(0,))


def _starts(*places: int) -> Any:
    return np.array(places, np.int64)


@samples("FractionalMaxPoolGrad")
def max_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without overlap."""
    windows = [_starts(0, 2, 5), _starts(0, 1, 3, 4)]
    for overlapping in (False, True):
        inputs = [rng.distinct((2, 5, 4, 2)), rng.normal((2, 2, 3, 2)), rng.normal((2, 2, 3, 2))]
        yield Sample([*inputs, *windows], {"overlapping": overlapping}, f"{overlapping}")


@samples("FractionalAvgPoolGrad")
def mean_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without overlap."""
    windows = [_starts(0, 2, 5), _starts(0, 1, 3, 4)]
    for overlapping in (False, True):
        inputs = [np.array([2, 5, 4, 2], np.int64), rng.normal((2, 2, 3, 2))]
        yield Sample([*inputs, *windows], {"overlapping": overlapping}, f"{overlapping}")


@error_samples("FractionalMaxPool", "FractionalAvgPool")
def wrong_attributes() -> Iterable[ErrorSample]:
    """Seeds that would not count, a batch that would shrink."""
    x = np.zeros((2, 4, 4, 2), np.float32)
    yield ErrorSample(
        [x], {"pooling_ratio": _RATIO, "seed": 3}, match="seed2 should be 0", tag="seeds"
    )
    yield ErrorSample(
        [x], {"pooling_ratio": [2.0, 1.5, 1.5, 1.0]}, "UnimplementedError", "not yet supported",
        "run", tag="batch",
    )  # fmt: skip
