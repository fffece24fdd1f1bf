"""Samples of local response normalization."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples

_ATTRS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5}, "wide"),
    ({"depth_radius": 1, "bias": 2.0, "alpha": 0.3, "beta": 0.75}, "narrow"),
    ({"depth_radius": 0, "bias": 1.0, "alpha": 0.5, "beta": 1.0}, "alone"),
)


@samples("LRN")
def lrn(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Radii around and beyond the channels."""
    for attrs, tag in _ATTRS:
        yield Sample([rng.normal((1, 2, 2, 4))], attrs, tag)
    yield Sample([rng.normal((0, 2, 2, 3))], _ATTRS[0][0], "empty", grad=False)
    yield Sample([rng.normal((1, 1, 1, 1))], _ATTRS[0][0], "single")


@samples("LRNGrad")
def lrn_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The third input is what LRN gave; any values will do for the formula."""
    for attrs, tag in _ATTRS:
        yield Sample([rng.normal((1, 2, 2, 4)) for _ in range(3)], attrs, tag)
    yield Sample([rng.normal((0, 2, 2, 3)) for _ in range(3)], _ATTRS[0][0], "empty")
