"""Samples of the ops that make tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Fill")
def fills(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Different ranks, both index types."""
    for shape, tag in (
        ((2, 3), "plain"),
        ((), "scalar"),
        ((0, 2), "empty"),
        ((2, 1, 2, 3), "rank4"),
    ):
        yield Sample([np.array(shape, _INT), rng.normal(())], {}, tag)
    yield Sample([np.array([3], np.int64), rng.normal(())], {}, "int64")


@samples("ZerosLike", "OnesLike")
def alike(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Different ranks."""
    for shape, tag in (
        ((2, 3), "plain"),
        ((), "scalar"),
        ((0, 2), "empty"),
        ((2, 1, 2, 3), "rank4"),
    ):
        yield Sample([rng.normal(shape)], {}, tag, grad=False)


@samples("Range", vary="Tidx")
def ranges(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Up, down, uneven, empty."""
    for start, limit, delta, tag in (
        (0, 5, 1, "plain"),
        (2, 9, 3, "uneven"),
        (5, 0, -2, "down"),
        (3, 3, 1, "empty"),
        (0, 1, 4, "one"),
    ):
        yield Sample([np.array(v, dtype) for v in (start, limit, delta)], {}, tag, grad=False)


@samples("LinSpace")
def spaces(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Up, down, a single number."""
    for start, stop, num, tag in ((0, 1, 5, "plain"), (2, -2, 4, "down"), (3, 7, 1, "one")):
        ends = [np.array(start, dtype), np.array(stop, dtype)]
        yield Sample([*ends, np.array(num, _INT)], {}, tag, grad=False)


@error_samples("Fill")
def bad_fills() -> Iterable[ErrorSample]:
    """A negative length."""
    args = [np.array([-1], _INT), np.array(1, np.float32)]
    yield ErrorSample(args, {}, "ValueError", "Fill dimensions must be >= 0", "build")
    yield ErrorSample(args, {}, "InvalidArgumentError", "Dimension -1 must be >= 0", "run")


@error_samples("Range")
def bad_ranges() -> Iterable[ErrorSample]:
    """A step of zero, and one that leads away."""
    for delta, text in ((0, "Requires delta != 0"), (-1, "Requires start >= limit when delta < 0")):
        args = [np.array(v, _INT) for v in (0, 5, delta)]
        yield ErrorSample(args, {}, "InvalidArgumentError", text, "run")


@error_samples("LinSpace")
def bad_spaces() -> Iterable[ErrorSample]:
    """No numbers at all."""
    args = [np.array(0, np.float32), np.array(1, np.float32), np.array(0, _INT)]
    yield ErrorSample(args, {}, "ValueError", "Requires num > 0: 0", "build")
    yield ErrorSample(args, {}, "InvalidArgumentError", "Requires num > 0: 0", "run")
