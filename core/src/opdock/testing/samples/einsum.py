"""Samples of sums over named axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples


@samples("Einsum")
def einsum(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Products, sums, transposes, a batch, an ellipsis, repeats in the result."""
    a, b = rng.normal((2, 3)), rng.normal((3, 4))
    yield Sample([[a, b]], {"equation": "ij,jk->ik"}, "product")
    yield Sample([[a]], {"equation": "ij->ji"}, "transpose")
    yield Sample([[a]], {"equation": "ij->"}, "sum")
    yield Sample(
        [[rng.normal((2, 2, 3)), rng.normal((2, 3, 2))]], {"equation": "bij,bjk->bik"}, "batch"
    )
    yield Sample([[rng.normal((2, 2, 3)), b]], {"equation": "...ij,jk->...ik"}, "ellipsis")
    yield Sample([[b[0]]], {"equation": "i->ii"}, "diagonal")
    yield Sample([[a, b]], {"equation": "ij,jk->kiik"}, "repeats")
