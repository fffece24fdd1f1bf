"""Samples of L2Loss and InTopK."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("L2Loss")
def l2_loss(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any shape gives a scalar."""
    for shape, tag in (((3, 4), "plain"), ((), "scalar"), ((2, 1, 3, 1, 2), "rank5")):
        yield Sample([rng.normal(shape)], tag=tag)
    yield Sample([rng.normal((0,))], tag="empty", grad=False)


def _scores(rng: Sampler, shape: tuple[int, int]) -> Any:
    return np.asarray(rng.distinct(shape), np.float32) / 4


_TIES = np.array([[1, 2, 2, 0], [3, 3, 3, 3]], np.float32)
_BAD = np.array([[1, np.inf, 0], [np.nan, 1, 2], [1, 2, 3]], np.float32)


@samples("InTopK")
def in_top_k(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Ties count as in; rows that are not finite never do, nor do targets out of range."""
    for k in (1, 3, 9):
        yield Sample([_scores(rng, (5, 6)), rng.integers((5,), 0, 6)], {"k": k}, f"k{k}")
    yield Sample([_TIES, np.array([2, 0], dtype)], {"k": 1}, "ties")
    yield Sample([_BAD, np.array([0, 1, 5], dtype)], {"k": 3}, "not-finite")
    yield Sample([np.zeros((0, 3), np.float32), np.zeros(0, dtype)], {"k": 1}, "empty")


@samples("InTopKV2")
def in_top_k_v2(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """As InTopK, with k as an input."""
    for sample in in_top_k(dtype, rng):
        k = np.array(sample.attrs["k"], dtype)
        yield Sample([*sample.inputs, k], tag=sample.tag)


@error_samples("InTopK")
def in_top_k_shapes() -> Iterable[ErrorSample]:
    """One target per row."""
    yield ErrorSample(
        [np.zeros((2, 3), np.float32), np.zeros(3, np.int32)], {"k": 1}, exception="ValueError",
        match="Dimensions must be equal, but are 2 and 3", phase="build",
    )  # fmt: skip
