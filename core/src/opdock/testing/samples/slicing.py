"""Samples of slices and subscripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
# shape of the input, begin, end, strides, masks (b, e, ellipsis, new axis, shrink), tag
_CASES: tuple[tuple[Any, ...], ...] = (
    ((4, 5), [1, 0], [3, 4], [1, 2], {}, "plain"),
    ((4, 5), [3, 4], [0, 0], [-1, -2], {}, "backwards"),
    ((4, 5), [1, 1], [3, 3], [1, 1], {"begin_mask": 1, "end_mask": 2}, "open"),
    ((4, 5), [0, 0], [0, 0], [-1, 1], {"begin_mask": 3, "end_mask": 3}, "reversed"),
    ((4, 5), [-1, 2], [0, 3], [1, 1], {"shrink_axis_mask": 3}, "element"),
    ((4, 5), [2], [3], [1], {"shrink_axis_mask": 1}, "row"),
    ((4, 5), [-3, 9], [9, -9], [1, -1], {}, "clamped"),
    ((4, 5), [2, 0], [2, 5], [1, 1], {}, "nothing"),
    (
        (2, 3, 4),
        [0, 0, 1],
        [0, 0, 3],
        [1, 1, 1],
        {"ellipsis_mask": 2, "begin_mask": 1, "end_mask": 1},
        "ellipsis",
    ),
    ((2, 3, 4), [0, 1], [0, 2], [1, 1], {"ellipsis_mask": 1, "shrink_axis_mask": 2}, "last"),
    ((3, 4), [0, 0, 1], [0, 2, 3], [1, 1, 1], {"new_axis_mask": 1}, "new-axis"),
    (
        (3, 4),
        [1, 0, 0],
        [2, 0, 2],
        [1, 1, 1],
        {"new_axis_mask": 2, "shrink_axis_mask": 1},
        "row-axis",
    ),
    ((2, 3, 2, 3, 2), [0, 1, 0], [2, 3, 2], [1, 1, 2], {"ellipsis_mask": 4}, "rank5"),
    ((0, 3), [0, 1], [0, 3], [1, 1], {}, "empty"),
)


def _bounds(case: tuple[Any, ...], dtype: Any = _INT) -> list[Any]:
    return [np.array(v, dtype) for v in case[1:4]]


def _selected(case: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of what a case selects."""
    shape, begin, end, strides, masks, _ = case
    index: list[Any] = []
    for i in range(len(begin)):
        bit = 1 << i
        if masks.get("ellipsis_mask", 0) & bit:
            index.append(Ellipsis)
        elif masks.get("new_axis_mask", 0) & bit:
            index.append(None)
        elif masks.get("shrink_axis_mask", 0) & bit:
            index.append(begin[i])
        else:
            first = None if masks.get("begin_mask", 0) & bit else begin[i]
            last = None if masks.get("end_mask", 0) & bit else end[i]
            index.append(slice(first, last, strides[i]))
    selected: tuple[int, ...] = np.zeros(shape)[tuple(index)].shape
    return selected


@samples("StridedSlice")
def subscripts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every mask."""
    for case in _CASES:
        yield Sample([rng.normal(case[0]), *_bounds(case)], case[4], case[5])
    yield Sample([rng.normal(_CASES[0][0]), *_bounds(_CASES[0], np.int64)], {}, "int64")


@samples("StridedSliceGrad")
def gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same subscripts, the other way."""
    for case in _CASES:
        values = rng.normal(_selected(case))
        yield Sample([np.array(case[0], _INT), *_bounds(case), values], case[4], case[5])


@samples("StridedSliceAssign", "ResourceStridedSliceAssign")
def assignments(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same subscripts, written to."""
    for case in _CASES:
        new = rng.normal(_selected(case))
        yield Sample([rng.normal(case[0]), *_bounds(case), new], case[4], case[5], grad=False)


@samples("Slice")
def blocks(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Blocks, rests, nothing."""
    for shape, begin, size, tag in (
        ((4, 5), (1, 2), (2, 3), "plain"),
        ((4, 5), (1, 0), (-1, 2), "rest"),
        ((4, 5), (0, 0), (4, 5), "all"),
        ((4, 5), (4, 0), (0, 5), "nothing"),
        ((), (), (), "scalar"),
        ((0, 2), (0, 1), (0, 1), "empty"),
        ((3, 2, 4, 2, 3), (1, 0, 2, 0, 1), (2, 2, -1, 1, 1), "rank5"),
    ):
        args = [np.array(begin, _INT), np.array(size, _INT)]
        yield Sample([rng.normal(shape), *args], {}, tag)
    yield Sample([rng.normal((5,)), np.array([1], np.int64), np.array([3], np.int64)], {}, "int64")


def _errors(cases: Iterable[tuple[Any, ...]]) -> Iterator[ErrorSample]:
    for arrays, attrs, name, match, phase in cases:
        values = [np.zeros(arrays[0], np.float32), *(np.array(a, _INT) for a in arrays[1:])]
        yield ErrorSample(values, attrs, name, match, phase)


@error_samples("Slice")
def bad_blocks() -> Iterable[ErrorSample]:
    """Blocks that leave the tensor."""
    yield from _errors(
        (
            (
                ((3, 3), [2, 2], [2, 2]),
                {},
                "InvalidArgumentError",
                r"Expected size\[0\] in \[0, 1\], but got 2",
                "run",
            ),
            (
                ((3,), [4], [0]),
                {},
                "InvalidArgumentError",
                r"Expected begin\[0\] in \[0, 3\], but got 4",
                "run",
            ),
            (((3, 3), [0], [1]), {}, "ValueError", "Shape must be rank 1 but is rank 2", "build"),
        )
    )


@error_samples("StridedSlice")
def bad_subscripts() -> Iterable[ErrorSample]:
    """Indices out of bounds, too many of them, steps of zero."""
    beyond = "slice index 5 of dimension 0 out of bounds"
    shrink = {"shrink_axis_mask": 1}
    yield from _errors(
        (
            (((3,), [5], [6], [1]), shrink, "ValueError", beyond, "build"),
            (((3,), [5], [6], [1]), shrink, "InvalidArgumentError", beyond, "run"),
            (
                ((3,), [0, 0], [1, 1], [1, 1]),
                {},
                "ValueError",
                "Index out of range using input dim 1; input has only 1 dims",
                "build",
            ),
            (((3,), [0], [1], [0]), {}, "ValueError", r"strides\[0\] must be non-zero", "build"),
            (((3,), [0], [1], [-1]), shrink, "ValueError", "only stride 1 allowed", "build"),
        )
    )


@error_samples("StridedSliceAssign", "ResourceStridedSliceAssign")
def bad_assignments() -> Iterable[ErrorSample]:
    """A value of another shape."""
    bounds = [np.array([v], _INT) for v in (0, 2, 1)]
    yield ErrorSample(
        [np.zeros(3, np.float32), *bounds, np.zeros(3, np.float32)],
        {},
        "InvalidArgumentError",
        r"shape of value was \[3\] instead of \[2\]",
        "run",
    )


@error_samples("StridedSliceGrad")
def bad_gradients() -> Iterable[ErrorSample]:
    """Bounds that are not as many, and a gradient of another shape."""
    shape, ones = np.array([3], _INT), np.ones(2, np.float32)
    for begin, gradient, text in (
        ([0, 0], ones, "Expected begin, end, and strides to be 1D equal size tensors"),
        ([0], ones[:1], r"shape of dy was \[1\] instead of \[2\]"),
    ):
        bounds = [np.array(bound, _INT) for bound in (begin, [2], [1])]
        yield ErrorSample([shape, *bounds, gradient], {}, "InvalidArgumentError", text, "run")
