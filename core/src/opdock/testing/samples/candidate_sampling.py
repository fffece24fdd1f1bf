"""Samples of the candidate samplers: seeded, so that the oracle can say every class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SEEDS: tuple[dict[str, Any], ...] = ({"seed": 87654321, "seed2": 7}, {"seed": 3, "seed2": 2**40})
_LOG: dict[str, Any] = {
    "tol": (1e-5, 1e-7),
    "tol_reason": "TF computes expected counts in single precision",
}


def _classes(*rows: Any) -> Any:
    return np.array(rows, np.int64)


def _drawn(num_true: int, count: int, unique: bool, **more: Any) -> dict[str, Any]:
    return {"num_true": num_true, "num_sampled": count, "unique": unique, **more}


@samples(
    "UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
    "ThreadUnsafeUnigramCandidateSampler",
)  # fmt: skip
def of_a_range(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Few of many, most of few, all; ranges that are a power of two and that are not."""
    for count, unique, limit, tag in (
        (5, False, 5, "all"), (5, True, 5, "all-unique"), (40, False, 3, "often"),
        (60, True, 97, "most"), (8, True, 1024, "power"),
    ):  # fmt: skip
        for seeds in _SEEDS:
            attrs = {**_drawn(2, count, unique), "range_max": limit, **seeds}
            yield Sample([_classes([0, 2], [1, 1])], attrs, tag, grad=False, **_LOG)


@samples("UniformCandidateSampler", "LogUniformCandidateSampler")
def of_a_wide_range(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """So many that a part of the words is rejected."""
    for limit in (2**31 - 2, 3 * 2**61):
        attrs = {**_drawn(2, 40, False), "range_max": limit, **_SEEDS[0]}
        yield Sample([_classes([0, 2], [1, 1])], attrs, "wide", grad=False, **_LOG)


@samples("FixedUnigramCandidateSampler")
def of_weights(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distortion, reserved classes, shards; more classes than a power of two."""
    weights = [1.0, 5.0, 0.5, 2.0, 8.0, 1.5, 0.25]
    for more, tag in (
        ({"range_max": 7}, "plain"),
        ({"range_max": 7, "distortion": 0.75}, "distorted"),
        ({"range_max": 9, "num_reserved_ids": 2}, "reserved"),
        ({"range_max": 3, "num_shards": 2, "shard": 1}, "shard"),
    ):
        for unique in (False, True):
            attrs = {**_drawn(1, 3, unique), "unigrams": weights, **more, **_SEEDS[0]}
            yield Sample([_classes([0], [2])], attrs, tag, grad=False, **_LOG)


@samples("AllCandidateSampler")
def all_of_them(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """No draw at all."""
    yield Sample([_classes([0, 2], [1, 1])], _drawn(2, 4, True), "plain", grad=False)


@samples("ComputeAccidentalHits")
def hits(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Some, several in a row, none, of repeated classes the last."""
    for drawn, tag in (
        ([1, 3, 5], "some"), ([0, 9], "none"), ([4, 1, 4, 1], "repeated"), ([], "empty")
    ):  # fmt: skip
        args = [_classes([1, 4], [5, 2], [4, 5]), np.array(drawn, np.int64)]
        yield Sample(args, {"num_true": 2}, tag, grad=False)


@error_samples("UniformCandidateSampler")
def bad_draws() -> Iterable[ErrorSample]:
    """More different classes than there are, a vector, the wrong number of columns."""
    attrs = {**_drawn(1, 4, True), "range_max": 3}
    yield ErrorSample(
        [_classes([0])], attrs, "InvalidArgumentError", "Sampler's range is too small", "run"
    )
    yield ErrorSample(
        [_classes(0)], attrs, "ValueError", "Shape must be rank 2 but is rank 1", "build"
    )
    yield ErrorSample(
        [_classes([0, 1])], {**attrs, "range_max": 9}, "InvalidArgumentError",
        "true_classes must have num_true columns, expected: 2 was: 1", "run",
    )  # fmt: skip


@error_samples("FixedUnigramCandidateSampler")
def bad_weights() -> Iterable[ErrorSample]:
    """None, and too few."""
    attrs = {**_drawn(1, 2, True), "range_max": 3}
    yield ErrorSample(
        [_classes([0])], attrs, "InvalidArgumentError",
        "Must provide either vocab_file or unigrams", "run",
    )  # fmt: skip
    yield ErrorSample(
        [_classes([0])], {**attrs, "unigrams": [1.0, 2.0]}, "InvalidArgumentError",
        "range_max is 3, but 2 weights stand", "run",
    )  # fmt: skip


@error_samples("ComputeAccidentalHits")
def bad_hits() -> Iterable[ErrorSample]:
    """Columns that do not fit."""
    yield ErrorSample(
        [_classes([0]), np.zeros(2, np.int64)], {"num_true": 2}, "ValueError",
        "Dimension must be 2 but is 1", "build",
    )  # fmt: skip
