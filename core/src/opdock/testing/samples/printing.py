"""Samples of formatting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples


@samples("StringFormat")
def formats(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Numbers, vectors, matrices; long ones are cut."""
    row, matrix = np.arange(10, dtype=np.int32), np.array([[1, 2], [3, 4]], np.int64)
    one = np.array(-7, np.int32)
    yield Sample([[one]], {"template": "x = %s"}, "scalar")
    yield Sample([[row]], {"template": "%s!"}, "cut")
    yield Sample([[row]], {"template": "%s", "summarize": -1}, "whole")
    attrs = {"template": "{} and {}", "placeholder": "{}"}
    yield Sample([[matrix, one]], attrs, "two")
