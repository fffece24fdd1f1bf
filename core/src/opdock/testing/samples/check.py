"""Samples of assertions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("Assert")
def assertions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Conditions that hold, with data of several types."""
    yield Sample([np.array(True), [np.array([1, 2], np.int32)]], {}, "plain")
    yield Sample([np.array(True), [np.float32(1), np.array(b"text", object)]], {}, "mixed-data")


@error_samples("Assert")
def failed_assertions() -> Iterable[ErrorSample]:
    """A condition that does not hold: the data are in the message."""
    data = [np.array(b"x was", object), np.array([7, 8], np.int32)]
    yield ErrorSample([np.array(False), data], {}, match=r"assertion failed: .*x was.*7 8")
