"""Samples of patches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples


@samples("ExtractImagePatches")
def images(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Windows, strides, rates, both paddings."""
    for shape, sizes, strides, rates, tag in (
        ((1, 5, 6, 2), (2, 3), (1, 1), (1, 1), "plain"),
        ((2, 5, 5, 1), (3, 3), (2, 2), (1, 1), "strides"),
        ((1, 6, 7, 1), (2, 2), (1, 2), (2, 3), "rates"),
        ((1, 2, 2, 1), (1, 1), (1, 1), (1, 1), "ones"),
        ((0, 4, 4, 1), (2, 2), (2, 2), (1, 1), "empty"),
    ):
        for padding in ("SAME", "VALID"):
            attrs = {
                "ksizes": [1, *sizes, 1],
                "strides": [1, *strides, 1],
                "rates": [1, *rates, 1],
                "padding": padding,
            }
            yield Sample([rng.integers(shape, -2, 3)], attrs, f"{tag}-{padding.lower()}")


@samples("ExtractVolumePatches")
def volumes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Windows, strides, both paddings."""
    for shape, sizes, strides, tag in (
        ((1, 3, 4, 3, 1), (2, 2, 1), (1, 1, 1), "plain"),
        ((1, 4, 3, 3, 2), (2, 1, 2), (2, 1, 2), "strides"),
    ):
        for padding in ("SAME", "VALID"):
            attrs = {"ksizes": [1, *sizes, 1], "strides": [1, *strides, 1], "padding": padding}
            yield Sample([rng.integers(shape, -2, 3)], attrs, f"{tag}-{padding.lower()}")
