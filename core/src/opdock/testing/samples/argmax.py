"""Samples of the places of extrema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("ArgMax", "ArgMin")
def positions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each axis, both output types, ties."""
    for axis in (0, 1, -1):
        for output in (np.int64, np.int32):
            yield Sample(
                [rng.normal((3, 4)), np.array(axis, _INT)],
                {"output_type": np.dtype(output)},
                f"axis{axis}",
                grad=False,
            )
    yield Sample([rng.normal((7,)), np.array(0, np.int64)], {}, "vector", grad=False)
    ties = np.array([[1, 1, 0], [2, 3, 3], [0, 0, 0]]).astype(dtype)
    yield Sample([ties, np.array(1, _INT)], {}, "ties", grad=False)
    yield Sample([rng.normal((2, 3, 4, 2, 2)), np.array(2, _INT)], {}, "rank5", grad=False)
    yield Sample([rng.normal((0, 3)), np.array(1, _INT)], {}, "empty", grad=False)


@error_samples("ArgMax", "ArgMin")
def bad_positions() -> Iterable[ErrorSample]:
    """An axis beyond the rank, and the largest of nothing."""
    data = np.zeros((2, 0), np.float32)
    yield ErrorSample(
        [data, np.array(2, _INT)], {}, "ValueError", r"must be in the range \[-2, 2\)", "build"
    )
    yield ErrorSample(
        [data, np.array(1, _INT)], {}, match=r"Reduction axis 1 is empty in shape \[2,0\]"
    )
