"""Samples for a sparse tensor combined with a dense one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, error_samples, samples

_CELLS = np.array([[0, 1], [1, 0], [1, 2]], np.int64)
_SHAPE = np.array([2, 3], np.int64)


@samples("SparseDenseCwiseMul")
@samples("SparseDenseCwiseAdd")
@samples("SparseDenseCwiseDiv")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    values, dense = rng.positive((3,)), rng.positive((2, 3))
    yield Sample([_CELLS, values, _SHAPE, dense], tag="plain")
    yield Sample([_CELLS, values, _SHAPE, rng.positive((1, 3))], tag="broadcast")
    yield Sample([_CELLS, values, _SHAPE, rng.positive((3,))], tag="lower-rank")
    yield Sample([_CELLS, values, _SHAPE, rng.positive(())], tag="scalar")
    yield Sample([_CELLS[:0], values[:0], _SHAPE, dense], tag="empty")


@error_samples("SparseDenseCwiseMul")
def _() -> Iterator[ErrorSample]:
    yield ErrorSample(
        [_CELLS, np.ones(3, np.float32), _SHAPE, np.ones((4,), np.float32)],
        {},
        exception="InvalidArgumentError",
        match="broadcasts dense to sparse only",
        phase="run",
    )


_OTHER = np.array([[0, 0], [1, 0], [1, 2], [2, 1]], np.int64)
_SIZE = np.array([3, 3], np.int64)


def _pair(rng: Any) -> list[Any]:
    return [_CELLS, rng.normal((3,)), _SIZE, _OTHER, rng.normal((4,)), _SIZE]


@samples("SparseAdd")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    real = np.zeros((), dtype).real.dtype
    for threshold in (0, 1):
        tag = f"threshold-{threshold}"
        yield Sample(
            [*_pair(rng), real.type(threshold)], {}, tag, grad_outputs=(1,), grad=not threshold
        )
    a = _pair(rng)
    yield Sample([a[0][:0], a[1][:0], _SIZE, *a[3:], real.type(0)], {}, "one-side", grad=False)
    if np.dtype(dtype).kind != "u":  # opposite values cancel out
        yield Sample([*a[:3], a[0], -a[1], _SIZE, real.type(1)], {}, "gone", grad=False)


@samples("SparseAddGrad")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    total = np.array([[0, 0], [0, 1], [1, 2], [2, 1]], np.int64)
    yield Sample([rng.normal((4,)), _CELLS, _OTHER, total], {}, "plain", grad=False)
    yield Sample([rng.normal((0,)), _CELLS, _OTHER, total[:0]], {}, "none", grad=False)


@samples("SparseSparseMaximum")
@samples("SparseSparseMinimum")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    a = _pair(rng)
    yield Sample(a, {}, "plain", grad=False)
    yield Sample([*a[:3], a[3][:0], a[4][:0], _SIZE], {}, "one-side", grad=False)


@samples("SparseTensorDenseAdd")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    yield Sample([_CELLS, rng.normal((3,)), _SIZE, rng.normal((3, 3))], {}, "plain")
    twice = _CELLS[[0, 1, 1]].astype(np.int32)
    size = _SIZE.astype(np.int32)
    yield Sample([twice, rng.normal((3,)), size, rng.normal((3, 3))], {}, "repeated")
    cells, one = np.array([[4], [1]], np.int64), np.array([5], np.int64)
    yield Sample([cells, rng.normal((2,)), one, rng.normal((5,))], {}, "vector")


@samples("SparseTensorDenseMatMul")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    size = np.array([2, 3], np.int64)
    real = np.dtype(dtype).kind != "c"
    for adjoint_a in (False, True):
        for adjoint_b in (False, True):
            inner = 2 if adjoint_a else 3
            b = rng.normal((4, inner) if adjoint_b else (inner, 4))
            attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
            tag = f"{'adjoint' if adjoint_a else 'plain'}-{'adjoint' if adjoint_b else 'plain'}"
            yield Sample([_CELLS, rng.normal((3,)), size, b], attrs, tag, grad=real)
    twice = _CELLS[[2, 0, 2]].astype(np.int32)
    yield Sample([twice, rng.normal((3,)), size, rng.normal((3, 2))], {}, "repeated", grad=real)
    yield Sample(
        [_CELLS[:0], rng.normal((0,)), size, rng.normal((3, 2))], {}, "no-cells", grad=False
    )
    yield Sample([_CELLS, rng.normal((3,)), size, rng.normal((3, 0))], {}, "empty", grad=False)


@samples("SparseSoftmax")
def _(dtype: Any, rng: Any) -> Iterator[Sample]:
    yield Sample([_OTHER, rng.normal((4,)), _SIZE], {}, "plain")
    deep = np.array([[0, 0, 1], [0, 0, 2], [0, 1, 0], [1, 0, 2], [1, 0, 3]], np.int64)
    size = np.array([2, 2, 4], np.int64)
    yield Sample([deep, rng.normal((5,)), size], {}, "rank3")
    yield Sample([deep, rng.normal((5,), 100.0), size], {}, "large", grad=False)
    yield Sample([deep[:0], rng.normal((0,)), size], {}, "empty", grad=False)


@error_samples("SparseTensorDenseMatMul")
def _() -> Iterator[ErrorSample]:
    values, size = np.ones(3, np.float32), np.array([2, 3], np.int64)
    b = np.ones((3, 2), np.float32)
    yield ErrorSample(
        [_CELLS, values, size, b.T.copy()], match="inner dimension does not match: 3 vs. 2"
    )
    yield ErrorSample([_CELLS, values, size, b[0]], match="Tensor 'b' is not a matrix")
    yield ErrorSample(
        [_CELLS * 2, values, size, b], match=r"k \(4\) from index\[2,1\] out of bounds"
    )
    yield ErrorSample([_CELLS, values[:2], size, b], match="Number of rows of a_indices")


@error_samples("SparseSparseMaximum")
def _() -> Iterator[ErrorSample]:
    values, size = np.ones(3, np.float32), np.array([2, 3], np.int64)
    yield ErrorSample(
        [_CELLS, values, size, _CELLS, values, np.array([2, 4], np.int64)],
        match="shapes do not match: got 3 and 4 for dimension 1",
    )
    yield ErrorSample(
        [_CELLS, values, size, _CELLS, values[:2], size],
        match="non-empty input values, got 3 and 2",
    )


@error_samples("SparseAdd")
def _() -> Iterator[ErrorSample]:
    values, size = np.ones(3, np.float32), np.array([2, 3], np.int64)
    yield ErrorSample(
        [_CELLS, values, size, _CELLS, values, np.array([2], np.int64), np.float32(0)],
        match="Operands do not have the same ranks",
    )


@error_samples("SparseTensorDenseAdd")
def _() -> Iterator[ErrorSample]:
    values, size = np.ones(3, np.float32), np.array([2, 3], np.int64)
    yield ErrorSample(
        [_CELLS, values, size, np.ones((2, 2), np.float32)], match="Dimension 1 does not equal"
    )
    yield ErrorSample(
        [_CELLS * 2, values, size, np.ones((2, 3), np.float32)], match="some invalid index on"
    )
    yield ErrorSample([_CELLS, values, size, np.ones((6,), np.float32)], match="different ranks")


@error_samples("SparseSoftmax")
def _() -> Iterator[ErrorSample]:
    one = np.array([3], np.int64)
    args = [np.array([[0]], np.int64), np.ones(1, np.float32), one]
    yield ErrorSample(args, match="Input should have rank >= 2")
