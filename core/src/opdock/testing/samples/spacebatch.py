"""Samples of blocks moved between space, batch and depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("SpaceToBatchND")
def to_batch(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Blocks of different sizes, with and without margins."""
    for shape, block, paddings, tag in (
        ((1, 4, 6, 2), [2, 3], [[0, 0], [0, 0]], "plain"),
        ((2, 3, 1), [2], [[1, 0]], "padded"),
        ((1, 2, 2, 1), [1, 1], [[0, 0], [0, 0]], "ones"),
        ((2, 3), [], np.zeros((0, 2)), "no-blocks"),
        ((0, 4, 2), [2], [[0, 0]], "empty"),
        ((1, 2, 2, 4, 1), [2, 1, 2], [[0, 0], [1, 0], [0, 2]], "rank5"),
    ):
        args = [rng.normal(shape), np.array(block, _INT), np.array(paddings, _INT)]
        yield Sample(args, {}, tag)


@samples("BatchToSpaceND")
def to_space(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Blocks of different sizes, with and without crops."""
    for shape, block, crops, tag in (
        ((6, 2, 2, 2), [2, 3], [[0, 0], [0, 0]], "plain"),
        ((4, 2, 1), [2], [[1, 0]], "cropped"),
        ((1, 2, 2, 1), [1, 1], [[0, 0], [0, 1]], "ones"),
        ((2, 3), [], np.zeros((0, 2)), "no-blocks"),
        ((0, 2, 2), [2], [[0, 0]], "empty"),
        ((4, 1, 2, 2, 1), [2, 1, 2], [[0, 1], [0, 0], [1, 1]], "rank5"),
    ):
        args = [rng.normal(shape), np.array(block, _INT), np.array(crops, _INT)]
        yield Sample(args, {}, tag)


@samples("SpaceToBatch")
def square_to_batch(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Square blocks."""
    for shape, paddings, tag in (
        ((1, 4, 4, 2), [[0, 0], [0, 0]], "plain"),
        ((2, 3, 2, 1), [[1, 0], [0, 2]], "padded"),
    ):
        yield Sample([rng.normal(shape), np.array(paddings, _INT)], {"block_size": 2}, tag)


@samples("BatchToSpace")
def square_to_space(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Square blocks."""
    for shape, crops, tag in (
        ((4, 2, 2, 2), [[0, 0], [0, 0]], "plain"),
        ((8, 1, 2, 1), [[1, 0], [0, 2]], "cropped"),
    ):
        yield Sample([rng.normal(shape), np.array(crops, _INT)], {"block_size": 2}, tag)


@samples("SpaceToDepth")
def to_depth(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every layout."""
    for shape, size, data_format, tag in (
        ((1, 4, 6, 3), 2, "NHWC", "plain"),
        ((2, 3, 3, 1), 3, "NHWC", "three"),
        ((1, 3, 4, 2), 2, "NCHW", "channels-first"),
        ((1, 2, 2, 2, 4), 2, "NCHW_VECT_C", "vectors"),
        ((0, 2, 2, 1), 2, "NHWC", "empty"),
    ):
        yield Sample([rng.normal(shape)], {"block_size": size, "data_format": data_format}, tag)


@samples("DepthToSpace")
def from_depth(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every layout."""
    for shape, size, data_format, tag in (
        ((1, 2, 3, 8), 2, "NHWC", "plain"),
        ((2, 1, 1, 9), 3, "NHWC", "three"),
        ((1, 8, 2, 3), 2, "NCHW", "channels-first"),
        ((1, 4, 2, 1, 4), 2, "NCHW_VECT_C", "vectors"),
        ((0, 2, 2, 4), 2, "NHWC", "empty"),
    ):
        yield Sample([rng.normal(shape)], {"block_size": size, "data_format": data_format}, tag)


@error_samples("SpaceToBatchND")
def bad_space() -> Iterable[ErrorSample]:
    """A dimension that is no multiple of the block."""
    args = [np.zeros((1, 3, 1), np.float32), np.array([2], _INT), np.array([[0, 0]], _INT)]
    yield ErrorSample(args, {}, "ValueError", "evenly divisible by 2 but is 3", "build")
    yield ErrorSample(
        args,
        {},
        "InvalidArgumentError",
        r"padded_shape\[0\]=3 is not divisible by block_shape\[0\]=2",
        "run",
    )


@error_samples("BatchToSpaceND")
def bad_batch() -> Iterable[ErrorSample]:
    """A batch that is no multiple of the block."""
    args = [np.zeros((3, 1, 1), np.float32), np.array([2], _INT), np.array([[0, 0]], _INT)]
    yield ErrorSample(args, {}, "ValueError", "evenly divisible by 2 but is 3", "build")
    yield ErrorSample(args, {}, "InvalidArgumentError", r"batch dimension \(3\)", "run")


@error_samples("SpaceToDepth")
def bad_depth() -> Iterable[ErrorSample]:
    """A height that is no multiple of the block."""
    x = np.zeros((1, 3, 2, 1), np.float32)
    yield ErrorSample(
        [x], {"block_size": 2}, "ValueError", "evenly divisible by 2 but is 3", "build"
    )
    yield ErrorSample(
        [x], {"block_size": 2}, "InvalidArgumentError", "should be divisible by 2", "run"
    )
