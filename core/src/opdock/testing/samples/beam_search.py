"""Samples of the op of beam search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _given(rng: Sampler, time: int, batch: int, width: int, end: int) -> list[Any]:
    shape = (time, batch, width)
    steps = rng.integers(shape, 0, 9).astype(np.int32)
    parents = rng.integers(shape, 0, max(width, 1)).astype(np.int32)
    lengths = rng.integers((batch,), 0, time + 2).astype(np.int32)
    return [steps, parents, lengths, np.array(end, np.int32)]


@samples("GatherTree")
def paths(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """Paths that cross, end early or never; one step, no batch."""
    for time, batch, width, end in ((5, 3, 4, 8), (6, 2, 3, 99), (1, 2, 2, 0), (3, 0, 2, 1)):
        given = _given(rng, time, batch, width, end)
        yield Sample(given, {}, f"{time}x{batch}x{width}", grad=False)


@error_samples("GatherTree")
def bad_paths() -> Iterator[ErrorSample]:
    """A parent that is no beam."""
    steps = np.zeros((2, 1, 2), np.int32)
    parents = np.array([[[0, 0]], [[-1, 5]]], np.int32)
    given = [steps, parents, np.array([2], np.int32), np.array(9, np.int32)]
    yield ErrorSample(given, {}, match=r"Saw invalid parent id -1 at \(batch, time, beam\)")
