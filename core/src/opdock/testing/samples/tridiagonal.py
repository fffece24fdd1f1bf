"""Samples of tridiagonal systems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples


@samples("TridiagonalSolve")
def tridiagonal_solves(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without pivoting, batch."""
    for pivoting in (True, False):
        for batch in ((), (2,)):
            diagonals = rng.uniform((*batch, 3, 4), -1, 1)
            diagonals[..., 1, :] += dtype.type(3)
            yield Sample(
                [diagonals, rng.normal((*batch, 4, 2))],
                {"partial_pivoting": pivoting},
                f"pivot{pivoting:d}",
            )


@samples("TridiagonalMatMul")
def tridiagonal_products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One matrix and a batch."""
    for batch in ((), (2,)):
        diagonals = [rng.normal((*batch, 1, 4)) for _ in range(3)]
        yield Sample([*diagonals, rng.normal((*batch, 4, 2))], {}, "plain")
