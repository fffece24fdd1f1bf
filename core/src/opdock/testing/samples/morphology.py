"""Samples of grayscale dilation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], tuple[int, ...], str]


def _attrs(strides: Any, rates: Any, padding: str) -> dict[str, Any]:
    return {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}


def _cases() -> Iterator[Case]:
    """(input shape, filter shape, attributes, output shape, tag)."""
    yield (1, 4, 4, 2), (3, 2, 2), _attrs((1, 1), (1, 1), "SAME"), (1, 4, 4, 2), "same"
    yield (2, 4, 5, 1), (2, 2, 1), _attrs((2, 1), (1, 1), "VALID"), (2, 2, 4, 1), "valid"
    yield (1, 5, 5, 1), (2, 2, 1), _attrs((1, 1), (2, 2), "VALID"), (1, 3, 3, 1), "rate"
    yield (1, 1, 1, 1), (1, 1, 1), _attrs((1, 1), (1, 1), "SAME"), (1, 1, 1, 1), "single"
    yield (0, 3, 3, 1), (2, 2, 1), _attrs((1, 1), (1, 1), "SAME"), (0, 3, 3, 1), "empty"


def _inputs(data: Any, kernel: Any, rng: Sampler) -> list[Any]:
    # Sums are unique: input steps are coarser than all filter values together.
    return [rng.distinct(data), rng.distinct(kernel, gap=0.015625)]


@samples("Dilation2D")
def dilation2d(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """No ties among floats, so that derivatives exist."""
    for data, kernel, attrs, _, tag in _cases():
        yield Sample(_inputs(data, kernel, rng), attrs, tag, 0 not in data)


@samples("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def dilation2d_backprop(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The gradient goes to the winner; integer ties go to the first."""
    for data, kernel, attrs, out, tag in _cases():
        yield Sample([*_inputs(data, kernel, rng), rng.integers(out, 0, 4)], attrs, tag)
