"""Samples of superseded ops: those of the ops that took their places."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opdock.ops.superseded import SUPERSEDED, Superseded
from opdock.testing.harness.sample import Sample, Sampler, SampleSet, sample_sets_for, samples
from opdock.testing.samples import decompositions, fft, matrix, solve

FAMILIES = (decompositions, fft, matrix, solve)
"""The families whose samples these are; they have to be there first."""


def _of_the_same(entry: SampleSet) -> Callable[[np.dtype[Any], Sampler], Iterator[Sample]]:
    def make(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
        for sample in entry.fn(dtype, rng):
            yield dataclasses.replace(sample, grad=False)

    return make


def _register(name: str, old: Superseded) -> None:
    for entry in sample_sets_for(old.by):
        samples(name, vary=entry.vary, types=entry.types)(_of_the_same(entry))


for _name, _old in SUPERSEDED.items():
    _register(_name, _old)
