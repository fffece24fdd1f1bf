"""Samples of the operations on bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples
from opdock.testing.samples.arithmetic import pairs

_SHAPES = (((3, 4), "plain"), ((), "scalar"), ((0, 2), "empty"), ((2, 1, 2, 1, 3), "rank5"))


def _wide(dtype: np.dtype[Any], rng: Sampler, shape: Any) -> Any:
    """Numbers over the type's range (up to 62 bits, which the oracle can hold)."""
    bits = min(8 * dtype.itemsize, 63) - 1
    return rng.integers(shape, -(2**bits), 2**bits)


@samples("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def logic(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any bits."""
    yield from pairs(lambda s: _wide(dtype, rng, s), lambda s: _wide(dtype, rng, s), grad=False)


@samples("LeftShift", "RightShift")
def shifts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shifts inside the width, and beyond it."""
    bits = 8 * dtype.itemsize

    def inside(shape: Any) -> Any:
        return rng.integers(shape, 0, bits)

    yield from pairs(lambda s: _wide(dtype, rng, s), inside, grad=False)
    amounts = [0, bits - 1, bits, bits + 5, -1]
    far = np.array(amounts if dtype.kind == "i" else amounts[:-1]).astype(dtype)
    yield Sample([np.full(far.shape, 3, dtype), far], tag="beyond", grad=False)


@samples("Invert", "PopulationCount")
def single(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any bits, negative numbers too."""
    for shape, tag in _SHAPES:
        yield Sample([_wide(dtype, rng, shape)], tag=tag, grad=False)
