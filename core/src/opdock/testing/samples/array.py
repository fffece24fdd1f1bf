"""Samples of the ops on shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_SHAPES = (((2, 3), "plain"), ((), "scalar"), ((0, 3), "empty"), ((1, 2, 1, 3, 2), "rank5"))


@samples("Shape", "Size")
def sizes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both output types."""
    for shape, tag in _SHAPES:
        for out_type in (np.int32, np.int64):
            yield Sample([rng.normal(shape)], {"out_type": np.dtype(out_type)}, tag, grad=False)


@samples("Rank")
def ranks(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Different ranks."""
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape)], {}, tag, grad=False)


@samples("ShapeN")
def shape_lists(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Lists of different lengths."""
    yield Sample([[rng.normal((2, 3))]], {"out_type": np.dtype(np.int32)}, "one", grad=False)
    yield Sample(
        [[rng.normal((2, 3)), rng.normal(()), rng.normal((0,))]],
        {"out_type": np.dtype(np.int64)},
        "three",
        grad=False,
    )


@samples("Reshape")
def reshapes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Lengths given and left to be found."""
    for source, wanted, tag in (
        ((2, 6), (3, 4), "plain"),
        ((2, 6), (-1,), "flat"),
        ((2, 3, 4), (4, -1, 2), "inferred"),
        ((1,), (), "to-scalar"),
        ((), (1, 1), "of-scalar"),
        ((0, 3), (3, 0), "empty"),
        ((0, 3), (-1,), "empty-flat"),
        ((2, 0, 3), (0, -1, 2), "empty-inferred"),
        ((2, 1, 3, 2, 2), (6, 4), "rank5"),
    ):
        yield Sample([rng.normal(source), np.array(wanted, _INT)], {}, tag)
    yield Sample([rng.normal((4,)), np.array([2, 2], np.int64)], {}, "int64")


@samples("ExpandDims")
def expansions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each end and the middle."""
    for axis in (0, 1, 2, -1, -3):
        yield Sample([rng.normal((2, 3)), np.array(axis, _INT)], {}, f"axis{axis}")
    yield Sample([rng.normal(()), np.array(0, np.int64)], {}, "scalar")
    yield Sample([rng.normal((0, 2)), np.array([1], _INT)], {}, "empty")
    yield Sample([rng.normal((2, 1, 2, 3)), np.array(-2, _INT)], {}, "rank4")


@samples("Squeeze")
def squeezes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All dimensions of length 1, or some."""
    for shape, axes, tag in (
        ((1, 3, 1), [], "all"),
        ((1, 3, 1), [0], "first"),
        ((1, 3, 1), [-1, 0], "named"),
        ((2, 3), [], "none"),
        ((1,), [], "to-scalar"),
        ((), [], "scalar"),
        ((1, 0, 1), [0], "empty"),
        ((2, 1, 1, 3, 1, 2), [1, 4], "rank6"),
    ):
        yield Sample([rng.normal(shape)], {"squeeze_dims": axes}, tag)


@samples("EnsureShape")
def assured(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Known, partial and unknown shapes."""
    for shape, tag in (((2, 3), "full"), ((None, 3), "partial"), (None, "any")):
        yield Sample([rng.normal((2, 3))], {"shape": shape}, tag)
    yield Sample([rng.normal(())], {"shape": ()}, "scalar")
    yield Sample([rng.normal((0, 2))], {"shape": (None, 2)}, "empty")


@samples("BroadcastTo")
def broadcasts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """New dimensions before, and lengths of 1."""
    for source, wanted, tag in (
        ((3,), (2, 3), "rows"),
        ((2, 1), (2, 3), "columns"),
        ((2, 3), (2, 3), "same"),
        ((), (2, 2), "scalar"),
        ((1, 3), (0, 3), "empty"),
        ((2, 1, 3), (2, 2, 4, 3), "rank4"),
    ):
        yield Sample([rng.normal(source), np.array(wanted, _INT)], {}, tag)


@samples("BroadcastArgs")
def shape_pairs(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shapes of equal and different lengths."""
    for a, b, tag in (
        ((2, 1, 3), (4, 1), "plain"),
        ((), (2, 3), "scalar"),
        ((1,), (0,), "empty"),
        ((5, 1), (5, 7), "equal"),
    ):
        yield Sample([np.array(a, dtype), np.array(b, dtype)], {}, tag, grad=False)


@samples("UnravelIndex", vary="Tidx")
def unraveled(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One index and several."""
    yield Sample([np.array([0, 5, 11, 7], dtype), np.array([3, 4], dtype)], {}, "vector")
    yield Sample([np.array(22, dtype), np.array([2, 3, 4], dtype)], {}, "scalar")
    yield Sample([np.zeros((0,), dtype), np.array([3, 4], dtype)], {}, "empty")
    yield Sample([np.arange(16).astype(dtype), np.array([2, 2, 2, 2], dtype)], {}, "rank4")


@error_samples("Reshape")
def bad_reshapes() -> Iterable[ErrorSample]:
    """Element counts that differ."""
    six = np.zeros(6, np.float32)
    yield ErrorSample(
        [six, np.array([4, 2], _INT)],
        {},
        "ValueError",
        r"Cannot reshape a tensor with 6 elements to shape \[4,2\] \(8 elements\)",
        "build",
    )
    yield ErrorSample(
        [six, np.array([4, 2], _INT)],
        {},
        "InvalidArgumentError",
        "6 values, but the requested shape has 8",
        "run",
    )
    yield ErrorSample(
        [six, np.array([-1, 4], _INT)],
        {},
        "InvalidArgumentError",
        "requires a multiple of 4",
        "run",
    )


@error_samples("Squeeze")
def bad_squeezes() -> Iterable[ErrorSample]:
    """A dimension that is not 1."""
    args, attrs = [np.zeros((2, 1), np.float32)], {"squeeze_dims": [0]}
    text = r"Can not squeeze dim\[0\], expected a dimension of 1, got 2"
    yield ErrorSample(args, attrs, "ValueError", text, "build")
    yield ErrorSample(args, attrs, "InvalidArgumentError", text, "run")


@error_samples("ExpandDims")
def bad_expansions() -> Iterable[ErrorSample]:
    """An axis beyond the end."""
    yield ErrorSample(
        [np.zeros((2,), np.float32), np.array(3, _INT)],
        {},
        "ValueError",
        r"dim 3 not in the interval \[-2, 1\]",
        "build",
    )


@error_samples("BroadcastTo")
def bad_broadcasts() -> Iterable[ErrorSample]:
    """Lengths that neither agree nor are 1."""
    yield ErrorSample(
        [np.zeros((2,), np.float32), np.array([3], _INT)],
        {},
        "ValueError",
        "Dimensions must be equal, but are 2 and 3",
        "build",
    )
    yield ErrorSample(
        [np.zeros((2,), np.float32), np.array([3], _INT)],
        {},
        "InvalidArgumentError",
        r"Incompatible shapes: \[2\] vs. \[3\]",
        "run",
    )


@error_samples("EnsureShape")
def bad_assurances() -> Iterable[ErrorSample]:
    """Another shape than the expected one."""
    yield ErrorSample(
        [np.zeros((2,), np.float32)],
        {"shape": (3,)},
        "InvalidArgumentError",
        r"\[2\] is not compatible with expected shape \[3\]",
        "run",
    )
