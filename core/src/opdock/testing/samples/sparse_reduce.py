"""Samples of reductions of sparse tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_CELLS = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 2], [1, 0, 3], [1, 1, 2]], np.int64)
_SIZE = np.array([2, 2, 4], np.int64)


def _cases(rng: Sampler, grad: bool) -> Iterator[Sample]:
    for axes, tag in (
        ([0], "first"), ([2], "last"), ([-1, 0], "two"), ([0, 1, 2], "all"), ([], "none"),
    ):  # fmt: skip
        for keep in (False, True):
            yield Sample(
                [_CELLS, rng.distinct((5,)), _SIZE, np.array(axes, np.int32)],
                {"keep_dims": keep}, f"{tag}-{keep}", grad=grad,
            )  # fmt: skip
    yield Sample(
        [_CELLS[:0], rng.distinct((0,)), _SIZE, np.array([1], np.int32)], {}, "empty", grad=False
    )


@samples("SparseReduceSum")
def sums(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """One axis, several, all, none."""
    yield from _cases(rng, True)


@samples("SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSumSparse")
def others(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """The same without gradients."""
    yield from _cases(rng, False)


@error_samples("SparseReduceSum", "SparseReduceMax")
def bad_axes() -> Iterator[ErrorSample]:
    """An axis that is none, a cell outside."""
    values, axis = np.ones(5, np.float32), np.array([3], np.int32)
    yield ErrorSample([_CELLS, values, _SIZE, axis], match="Invalid reduction dimension 3")
    size = np.array([2, 2, 3], np.int64)
    yield ErrorSample([_CELLS, values, size, axis * 0], match="is out of bounds")
