"""Samples of softmax and the cross entropies fused with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

# What is infinite and what is no number, first, last and in every place.
_ODD = [
    [np.inf, 0, 1], [-np.inf, 0, 1], [0, 1, -np.inf], [-np.inf] * 3, [np.nan, np.inf, 0],
    [0, 1, np.nan], [np.nan] * 3,
]  # fmt: skip


@samples("Softmax", "LogSoftmax")
def softmax(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows of any rank, single classes, and logits far apart."""
    for shape in ((3, 5), (4,), (2, 1, 3, 2), (3, 1)):
        yield Sample([rng.normal(shape)], tag="x".join(map(str, shape)))
    yield Sample([np.array([[100.0, -100.0, 0.0], [7.0, 7.0, 7.0]], dtype)], tag="far")
    yield Sample([rng.normal((0, 3))], tag="empty", grad=False)
    yield Sample([rng.normal((3, 0))], tag="no-class", grad=False)
    yield Sample([np.array(_ODD, dtype)], tag="odd", grad=False)


@samples("SoftmaxCrossEntropyWithLogits")
def xent(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Labels that sum to 1 as the gradient assumes, others, and one side broadcast."""
    labels = np.array([[1, 2, 4, 1], [0, 8, 0, 0], [3, 3, 1, 1]], np.float64) / 8
    yield Sample([rng.normal((3, 4)), labels.astype(dtype)], tag="plain")
    yield Sample([rng.normal((2, 1)), np.ones((2, 1), dtype)], tag="one")
    yield Sample([rng.normal((3, 4)), rng.uniform((3, 4), 0.0, 0.5)], tag="any", grad=False)
    yield Sample([rng.normal((3, 4)), rng.uniform((1, 4), 0.0, 0.5)], tag="broadcast", grad=False)
    onehot = np.eye(3, dtype=np.float64).astype(dtype)
    yield Sample([np.array([[60, 0, -60]] * 3, dtype), onehot], tag="far", grad=False)
    yield Sample([rng.normal((0, 4)), rng.normal((0, 4))], tag="empty", grad=False)
    yield Sample([rng.normal((4, 0)), rng.normal((4, 0))], tag="no-class", grad=False)
    second = np.array([[0, 1, 0]], dtype)
    yield Sample([np.array(_ODD, dtype), second], tag="odd", grad=False)


@samples("SparseSoftmaxCrossEntropyWithLogits")
def sparse_xent(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Labels of both integer types."""
    yield Sample([rng.normal((3, 4)), rng.indices((3,), 4, np.int64)], tag="plain")
    yield Sample([rng.normal((3, 4)), rng.indices((3,), 4, np.int32)], tag="int32")
    yield Sample([rng.normal((2, 1)), np.zeros(2, np.int64)], tag="one")
    yield Sample([rng.normal((0, 4)), np.zeros(0, np.int64)], tag="empty", grad=False)
    odd = np.array(_ODD, dtype)
    yield Sample([odd, np.ones(len(odd), np.int64)], tag="odd", grad=False)


@error_samples("SparseSoftmaxCrossEntropyWithLogits")
def sparse_xent_errors() -> Iterable[ErrorSample]:
    """Ranks and sizes that do not fit."""
    logits = np.zeros((2, 3), np.float32)
    yield ErrorSample(
        [logits, np.zeros((2, 3), np.int32)], exception="ValueError",
        match="Shape must be rank 1 but is rank 2", phase="build", tag="rank",
    )  # fmt: skip
    yield ErrorSample(
        [logits, np.zeros(3, np.int32)], exception="ValueError",
        match="Dimensions must be equal, but are 2 and 3", phase="build", tag="size",
    )  # fmt: skip
    yield ErrorSample(
        [np.zeros((0, 0), np.float32), np.zeros(0, np.int32)], exception="InvalidArgumentError",
        match=r"Must have at least one class, but got logits shape \[0, ?0\]", phase="run",
        tag="no-class",
    )  # fmt: skip


@error_samples("SoftmaxCrossEntropyWithLogits")
def xent_errors() -> Iterable[ErrorSample]:
    """Shapes that do not broadcast to a matrix."""
    yield ErrorSample(
        [np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)], exception="ValueError",
        match="Dimensions must be equal, but are 3 and 4", phase="build", tag="size",
    )  # fmt: skip
    yield ErrorSample(
        [np.zeros((2, 3, 1), np.float32), np.zeros((2, 3, 1), np.float32)],
        exception="ValueError", match="rank 2, but is rank 3", phase="build", tag="rank",
    )  # fmt: skip
