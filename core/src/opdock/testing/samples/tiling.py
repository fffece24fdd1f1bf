"""Samples of the ops that rearrange tensors along their dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Tile")
def tiles(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeated, unchanged, gone."""
    for shape, multiples, tag in (
        ((2, 3), (2, 1), "rows"),
        ((2, 3), (2, 3), "both"),
        ((2, 3), (1, 1), "once"),
        ((2, 3), (0, 2), "nothing"),
        ((3,), (4,), "vector"),
        ((), (), "scalar"),
        ((0, 2), (2, 2), "empty"),
        ((1, 2, 1, 3), (2, 1, 3, 1), "rank4"),
    ):
        yield Sample([rng.normal(shape), np.array(multiples, _INT)], {}, tag)
    yield Sample([rng.normal((2,)), np.array([3], np.int64)], {}, "int64")


@samples("ReverseV2")
def reversals(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Some dimensions, all, none."""
    for shape, axes, tag in (
        ((2, 3), [1], "last"),
        ((2, 3), [0, -1], "all"),
        ((2, 3), [], "none"),
        ((4,), [-1], "vector"),
        ((0, 3), [0, 1], "empty"),
        ((2, 3, 2, 2, 2), [1, 4], "rank5"),
    ):
        yield Sample([rng.normal(shape), np.array(axes, _INT)], {}, tag)


@samples("Reverse")
def old_reversals(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Dimensions marked by bools."""
    for shape, marks, tag in (
        ((2, 3), [False, True], "last"),
        ((2, 3), [True, True], "all"),
        ((2, 3), [False, False], "none"),
        ((), [], "scalar"),
        ((2, 2, 3, 2), [True, False, True, False], "rank4"),
    ):
        yield Sample([rng.normal(shape), np.array(marks, np.bool_)], {}, tag)


@samples("ReverseSequence")
def sequences(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Whole, partial and empty sequences, along either dimension."""
    for shape, lengths, along, batch, tag in (
        ((3, 4), (0, 2, 4), 1, 0, "batch-major"),
        ((4, 3), (1, 3, 4), 0, 1, "time-major"),
        ((2, 3, 4), (3, 1), 1, 0, "rank3"),
        ((0, 3), (), 1, 0, "empty"),
        ((2, 3, 2, 4), (4, 2, 3), 3, 1, "rank4"),
    ):
        args = [rng.normal(shape), np.array(lengths, np.int64)]
        yield Sample(args, {"seq_dim": along, "batch_dim": batch}, tag)


@samples("Roll")
def rolls(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Forth, back, around, along several dimensions."""
    for shape, shift, axis, tag in (
        ((5,), 2, 0, "vector"),
        ((3, 4), -1, 1, "back"),
        ((3, 4), [1, 2], [0, 1], "both"),
        ((3, 4), [1, 3], [1, 1], "twice"),
        ((3,), 7, 0, "around"),
        ((0, 2), 1, 0, "empty"),
        ((2, 3, 2, 2), [1, -2], [1, -1], "rank4"),
    ):
        yield Sample([rng.normal(shape), np.array(shift, _INT), np.array(axis, _INT)], {}, tag)


@error_samples("Tile")
def bad_tiles() -> Iterable[ErrorSample]:
    """A count too many, and a negative one."""
    x = np.zeros((2,), np.float32)
    yield ErrorSample([x, np.array([1, 1], _INT)], {}, "ValueError", "must be equal", "build")
    yield ErrorSample(
        [x, np.array([-1], _INT)],
        {},
        "InvalidArgumentError",
        r"Expected multiples\[0\] >= 0, but got -1",
        "run",
    )


@error_samples("ReverseV2")
def bad_reversals() -> Iterable[ErrorSample]:
    """A dimension twice, and one that there is not."""
    x = np.zeros((2, 2), np.float32)
    for axes, text in (
        ([1, -1], "axis 1 specified more than once"),
        ([2], r"'axis'\[0\] = 2 is out of valid range"),
    ):
        args = [x, np.array(axes, _INT)]
        yield ErrorSample(args, {}, "ValueError", text, "build")
        yield ErrorSample(args, {}, "InvalidArgumentError", text, "run")


@error_samples("ReverseSequence")
def bad_sequences() -> Iterable[ErrorSample]:
    """A sequence longer than there are elements."""
    args = [np.zeros((2, 3), np.float32), np.array([1, 4], np.int64)]
    yield ErrorSample(args, {"seq_dim": 1}, "InvalidArgumentError", r"seq_lens\(1\)", "run")
