"""Samples of clustering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _int(value: int) -> Any:
    return np.array(value, np.int64)


# Whole numbers: distances between them are exact, so draws never hang on a last bit.
_POINTS = np.array([[0, 0], [8, 1], [1, 0], [-4, 9], [7, 2], [-5, 8], [0, 1]], np.float32)


@samples("KmeansPlusPlusInitialization")
def beginnings(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Few points and all of them, with and without retries."""
    for count, retries in ((1, 0), (3, 0), (3, 2), (4, -1), (7, 1)):
        inputs = [_POINTS, _int(count), _int(5 + count), _int(retries)]
        yield Sample(inputs, {}, f"{count}-of-7-retries{retries}")


@samples("KMC2ChainInitialization")
def chains(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One candidate, several, all at no distance."""
    for tag, distances in (("one", [2]), ("several", [1, 4, 0, 2, 3]), ("zeros", [0, 0, 0])):
        yield Sample([np.array(distances, np.float32), _int(3)], {}, tag)


@samples("NearestNeighbors")
def neighbors(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """None, one, some, more than there are."""
    for k in (0, 1, 2, 9):
        yield Sample([_POINTS, _POINTS[1:4] + 1, _int(k)], {}, f"k{k}")


@error_samples("KmeansPlusPlusInitialization")
def misfits() -> Iterable[ErrorSample]:
    """More samples than points; no points; none wanted."""
    zero = _int(0)
    yield ErrorSample([_POINTS, _int(8), zero, zero], {}, match=r"num_to_sample <= points.rows")
    yield ErrorSample([_POINTS[:0], _int(1), zero, zero], {}, match=r"points.rows\(\) > 0")
    yield ErrorSample([_POINTS, zero, zero, zero], {}, match="Expected num_to_sample > 0")


@error_samples("KMC2ChainInitialization")
def nobody() -> Iterable[ErrorSample]:
    """No candidates."""
    yield ErrorSample([np.zeros(0, np.float32), _int(0)], {}, match="Expected distances_tensor")


@error_samples("NearestNeighbors")
def widths() -> Iterable[ErrorSample]:
    """Points and centers of other dimensions; no points."""
    wide = np.zeros((2, 3), np.float32)
    yield ErrorSample([_POINTS, wide, _int(1)], {}, match="Expected point_dimensions ==")
    yield ErrorSample([_POINTS[:0], _POINTS, _int(1)], {}, match=r"points.rows\(\) > 0")
