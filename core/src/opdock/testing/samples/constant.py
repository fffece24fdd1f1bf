"""Samples of constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples


@samples("Const", vary="dtype")
def consts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values of every rank."""
    for tag, shape in (("plain", (2, 3)), ("scalar", ()), ("empty", (0, 2)), ("rank3", (2, 1, 2))):
        yield Sample([], {"value": rng.normal(shape)}, tag)
