"""Samples of clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples

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
