"""Samples of the functions of complex numbers and of their parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples
from opdock.testing.samples.arithmetic import pairs

_SHAPES = (((3, 4), "plain"), ((), "scalar"), ((0, 3), "empty"), ((2, 1, 3, 1, 2), "rank5"))
_WIDE = 16


@samples("Complex")
def from_parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Parts that broadcast."""
    whole = np.complex128 if dtype.itemsize == 8 else np.complex64
    for sample in pairs(rng.normal, rng.normal):
        yield Sample(sample.inputs, {"Tout": np.dtype(whole)}, sample.tag, grad=sample.grad)


@samples("Real", "Imag", "Angle", "ComplexAbs")
def to_part(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Numbers away from 0 and from the cut of the angle."""
    part = np.dtype(np.float64 if dtype.itemsize == _WIDE else np.float32)
    for shape, tag in _SHAPES:
        yield Sample([rng.positive(shape)], {"Tout": part}, tag, grad=tag != "empty")
    turned = np.array([1j, -1, -1j, -1 + 1j, -1 - 1j]).astype(dtype)
    yield Sample([turned], {"Tout": part}, "turned", grad=False)


@samples("Conj")
def conjugate(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any numbers."""
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape)], tag=tag, grad=tag != "empty")
