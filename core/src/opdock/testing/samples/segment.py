"""Samples of the segment ops."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _ids(*values: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def _sorted_cases(draw: Any) -> Iterable[Sample]:
    yield Sample([draw((4, 3)), _ids(0, 0, 1, 2)], {}, "plain")
    yield Sample([draw((4, 2)), _ids(0, 2, 2, 5, dtype=np.int64)], {}, "gaps")
    yield Sample([draw((3,)), _ids(1, 1, 1)], {}, "vector")
    yield Sample([draw((3, 2, 1, 2, 2)), _ids(0, 1, 1)], {}, "rank5")
    yield Sample([draw((0, 3)), _ids()], {}, "empty", grad=False)
    yield Sample(
        [draw((40, 3)), np.sort(np.arange(40) // 7).astype(np.int32)], {}, "many", grad=False
    )


@samples("SegmentSum", "SegmentMean")
def sums(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any numbers."""
    yield from _sorted_cases(rng.normal)


@samples("SegmentProd")
def sorted_products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Factors near one."""
    yield from _sorted_cases(lambda shape: rng.positive(shape, 0.7, 1.4))


@samples("SegmentMax", "SegmentMin")
def extremes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct numbers: the derivative at a tie is a matter of taste."""
    yield from _sorted_cases(rng.distinct)


def _unsorted_cases(draw: Any) -> Iterable[Sample]:
    yield Sample([draw((5, 2)), _ids(2, 0, 2, 1, 0), np.array(3, np.int32)], {}, "plain")
    yield Sample([draw((4, 2)), _ids(3, -1, 0, -1), np.array(5, np.int64)], {}, "negative-and-gaps")
    ids = np.array([[1, 0, 1], [0, 3, 1]], np.int64)
    yield Sample([draw((2, 3, 2)), ids, np.array(4, np.int32)], {}, "matrix-ids")
    yield Sample([draw((2, 3)), ids, np.array(4, np.int32)], {}, "ids-of-full-rank")
    yield Sample([draw((0, 3)), _ids(), np.array(2, np.int32)], {}, "empty", grad=False)
    yield Sample(
        [draw((3,)), _ids(-1, -1, -1), np.array(2, np.int32)], {}, "all-dropped", grad=False
    )


@samples("UnsortedSegmentSum")
def unsorted_sums(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any numbers."""
    yield from _unsorted_cases(rng.normal)


@samples("UnsortedSegmentProd")
def unsorted_products(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Factors near one."""
    yield from _unsorted_cases(lambda shape: rng.positive(shape, 0.7, 1.4))


@samples("UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_extremes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct numbers; what stands for an empty segment is too large to difference."""
    for sample in _unsorted_cases(rng.distinct):
        yield dataclasses.replace(sample, grad=sample.tag == "plain")


def _sparse_cases(draw: Any, *extra: np.ndarray[Any, Any]) -> Iterable[Sample]:
    yield Sample([draw((5, 3)), _ids(0, 4, 0, 2), _ids(0, 0, 1, 3), *extra], {}, "plain")
    yield Sample(
        [draw((5, 2)), _ids(3, 3, 1, dtype=np.int64), _ids(0, 0, 0), *extra], {}, "repeated"
    )
    yield Sample([draw((4,)), _ids(3, 1), _ids(0, 2), *extra], {}, "vector")
    yield Sample([draw((4, 2)), _ids(), _ids(), *extra], {}, "empty", grad=False)


@samples("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def sparse(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows picked by index, then folded."""
    yield from _sparse_cases(rng.normal)


@samples(
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
)
def sparse_counted(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with a fixed number of segments, some of them empty."""
    yield from _sparse_cases(rng.normal, np.array(5, np.int32))


@samples("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def sparse_grads(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A gradient per segment, handed to the rows the segment picked."""
    rows = np.array(6, np.int32)
    yield Sample([rng.normal((4, 3)), _ids(0, 4, 0, 2), _ids(0, 0, 1, 3), rows], {}, "plain")
    yield Sample(
        [rng.normal((2,)), _ids(5, 5, 1, dtype=np.int64), _ids(0, 0, 1), rows], {}, "vector"
    )
    yield Sample([rng.normal((2, 2)), _ids(), _ids(), rows], {}, "empty", grad=False)


@error_samples("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def bad_sorted() -> Iterable[ErrorSample]:
    """Ids that decrease, negative ids, too few ids."""
    data = np.zeros((3, 2), np.float32)
    yield ErrorSample([data, _ids(2, 1, 0)], {}, match="segment ids are not increasing")
    yield ErrorSample([data, _ids(0, 0, -1)], {}, match="segment ids must be >= 0")
    yield ErrorSample(
        [data, _ids(-1, 0, 1)], {},
        match=r"Segment id -1 out of range \[0, 2\), possibly because 'segment_ids' input is not",
    )  # fmt: skip
    yield ErrorSample(
        [data, _ids(0, 1)], {}, match="segment_ids should be the same size as dimension 0 of input"
    )


@error_samples("UnsortedSegmentSum", "UnsortedSegmentMax")
def bad_unsorted() -> Iterable[ErrorSample]:
    """An id beyond the last segment, ids that are no prefix of the data."""
    data = np.zeros((3, 2), np.float32)
    yield ErrorSample(
        [data, _ids(0, 3, 1), np.array(3, np.int32)],
        {},
        match=r"segment_ids\[1\] = 3 is out of range \[0, 3\)",
    )
    yield ErrorSample(
        [data, _ids(0, 1), np.array(3, np.int32)],
        {},
        match=r"data.shape = \[3,2\] does not start with segment_ids.shape = \[2\]",
    )


@error_samples("SparseSegmentSum", "SparseSegmentMean")
def bad_sparse() -> Iterable[ErrorSample]:
    """An index beyond the data, ids that decrease."""
    data = np.zeros((3, 2), np.float32)
    yield ErrorSample(
        [data, _ids(0, 9), _ids(0, 1)], {}, match=r"indices\[1\] == 9 out of range \[0, 3\)"
    )
    yield ErrorSample([data, _ids(0, 1), _ids(1, 0)], {}, match="segment ids are not increasing")


@error_samples("SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments")
def bad_counted() -> Iterable[ErrorSample]:
    """More segments than were said."""
    yield ErrorSample(
        [np.zeros((3, 2), np.float32), _ids(0, 1), _ids(0, 5), np.array(3, np.int32)], {},
        match="segment ids must be < num_segments",
    )  # fmt: skip


@error_samples("SparseSegmentMeanGrad")
def bad_gradients() -> Iterable[ErrorSample]:
    """Segments without a gradient."""
    yield ErrorSample(
        [np.zeros((2, 2), np.float32), _ids(0, 1), _ids(0, 5), np.array(3, np.int32)], {},
        match="Invalid number of segments",
    )  # fmt: skip
