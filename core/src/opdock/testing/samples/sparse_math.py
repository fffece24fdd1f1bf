"""Samples for a sparse tensor combined with a dense one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, error_samples, samples

_CELLS = np.array([[0, 1], [1, 0], [1, 2]], np.int64)
_SHAPE = np.array([2, 3], np.int64)


@samples("SparseDenseCwiseMul")
@samples("SparseDenseCwiseAdd")
@samples("SparseDenseCwiseDiv")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    values, dense = rng.positive((3,)), rng.positive((2, 3))
    yield Sample([_CELLS, values, _SHAPE, dense], tag="plain")
    yield Sample([_CELLS, values, _SHAPE, rng.positive((1, 3))], tag="broadcast")
    yield Sample([_CELLS, values, _SHAPE, rng.positive((3,))], tag="lower-rank")
    yield Sample([_CELLS, values, _SHAPE, rng.positive(())], tag="scalar")
    yield Sample([_CELLS[:0], values[:0], _SHAPE, dense], tag="empty")


@error_samples("SparseDenseCwiseMul")
def _() -> Iterator[ErrorSample]:
    yield ErrorSample(
        [_CELLS, np.ones(3, np.float32), _SHAPE, np.ones((4,), np.float32)],
        {},
        exception="InvalidArgumentError",
        match="broadcasts dense to sparse only",
        phase="run",
    )
