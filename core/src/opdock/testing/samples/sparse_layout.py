"""Samples of sparse tensors laid out anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_CELLS = np.array([[0, 1], [1, 0], [1, 2]], np.int64)
_MIXED = np.array([[1, 2], [0, 1], [2, 0], [1, 0]], np.int64)
_DEEP = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 2], [1, 1, 3]], np.int64)


def _i64(*values: int) -> Any:
    return np.array(values, np.int64)


def _zero(rng: Sampler) -> Any:
    return rng.normal(())


@samples("SparseToDense")
def dense(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Cells of matrices, places of vectors, one value for all, none at all."""
    three, loose = rng.normal((3,)), {"validate_indices": False}
    yield Sample([_CELLS, _i64(2, 3), three, _zero(rng)], {}, "plain")
    yield Sample(
        [_i64(0, 2, 3).astype(np.int32), np.array([5], np.int32), three, _zero(rng)], {}, "vector"
    )
    yield Sample([_i64(0, 2, 3), _i64(5), rng.normal(()), _zero(rng)], {}, "one-value", grad=False)
    yield Sample([np.int64(2), _i64(5), rng.normal(()), _zero(rng)], {}, "one-place", grad=False)
    yield Sample([_MIXED, _i64(3, 3), rng.normal((4,)), _zero(rng)], loose, "out-of-order")
    yield Sample([_CELLS[:0], _i64(2, 3), three[:0], _zero(rng)], {}, "no-cells", grad=False)
    yield Sample([_CELLS[:0], _i64(0, 3), three[:0], _zero(rng)], {}, "empty", grad=False)


@samples("SparseReorder")
def order(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Cells in some order, in order already, none."""
    yield Sample([_MIXED, rng.normal((4,)), _i64(3, 3)], {}, "plain")
    yield Sample([_DEEP[::-1].copy(), rng.normal((4,)), _i64(2, 2, 4)], {}, "rank3")
    yield Sample([_CELLS, rng.normal((3,)), _i64(2, 3)], {}, "in-order")
    yield Sample([_CELLS[:0], rng.normal((0,)), _i64(2, 3)], {}, "empty", grad=False)


@samples("SparseReshape")
def shape(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Other ranks, a size left open, the same shape."""
    for wanted, tag in (
        (_i64(3, 2), "plain"), (_i64(-1), "open"), (_i64(1, 2, -1, 1), "longer"),
        (_i64(2, 3), "same"),
    ):  # fmt: skip
        yield Sample([_CELLS, _i64(2, 3), wanted], {}, tag, grad=False)
    yield Sample([_CELLS[:0], _i64(2, 3), _i64(6)], {}, "no-cells", grad=False)
    yield Sample([_CELLS[:0], _i64(0, 3), _i64(0, 4)], {}, "empty", grad=False)


@samples("SparseSlice")
def boxes(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Boxes inside, beyond the shape, without cells."""
    values = rng.normal((4,))
    for start, size, tag in (
        (_i64(0, 0, 1), _i64(2, 2, 2), "plain"), (_i64(1, 0, 2), _i64(5, 5, 5), "beyond"),
        (_i64(0, 0, 3), _i64(1, 1, 1), "no-cells"), (_i64(2, 0, 0), _i64(1, 2, 4), "outside"),
    ):  # fmt: skip
        yield Sample(
            [_DEEP, values, _i64(2, 2, 4), start, size], {}, tag, grad=tag in ("plain", "beyond")
        )


@error_samples("SparseSlice")
def no_boxes() -> Iterator[ErrorSample]:
    """A corner and a size of other ranks than the tensor's."""
    values = np.ones(4, np.float32)
    yield ErrorSample([_DEEP, values, _i64(2, 2, 4), _i64(0, 0), _i64(2, 2)], {}, tag="ranks")


@samples("SparseSliceGrad")
def box_gradients(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Some of the cells, and none."""
    some = _DEEP[[0, 2]] - _i64(0, 0, 1)
    yield Sample([rng.normal((2,)), _DEEP, _i64(0, 0, 1), some], {}, "plain", grad=False)
    yield Sample([rng.normal((0,)), _DEEP, _i64(0, 0, 3), _DEEP[:0]], {}, "none", grad=False)


@samples("SparseConcat")
def joins(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Along either dimension; a part without cells."""
    for axis, tag in ((0, "first"), (1, "second"), (-1, "last")):
        sizes = [_i64(2, 3), _i64(2, 3), _i64(2, 3)]
        cells = [_CELLS, _CELLS[:0], _CELLS[::-1].copy()]
        values = [rng.normal((len(c),)) for c in cells]
        yield Sample([cells, values, sizes], {"concat_dim": axis}, tag, grad=False)


@samples("SparseSplit")
def parts(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Equal and unequal parts."""
    for axis, count, tag in ((0, 2, "rows"), (1, 3, "columns"), (1, 2, "unequal"), (0, 1, "one")):
        yield Sample(
            [np.int64(axis), _CELLS, rng.normal((3,)), _i64(2, 3)], {"num_split": count}, tag,
            grad=False,
        )  # fmt: skip


@samples("SparseFillEmptyRows")
def rows(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Rows that are empty, none that is, and no rows."""
    yield Sample(
        [_CELLS * 2, rng.normal((3,)), _i64(5, 5), _zero(rng)], {}, "plain", grad_outputs=(1,)
    )
    yield Sample([_CELLS, rng.normal((3,)), _i64(2, 3), _zero(rng)], {}, "full", grad_outputs=(1,))
    yield Sample(
        [_MIXED, rng.normal((4,)), _i64(4, 3), _zero(rng)], {}, "out-of-order", grad_outputs=(1,)
    )
    yield Sample([_CELLS[:0], rng.normal((0,)), _i64(3, 3), _zero(rng)], {}, "no-cells", grad=False)
    yield Sample([_CELLS[:0], rng.normal((0,)), _i64(0, 3), _zero(rng)], {}, "empty", grad=False)


@samples("SparseFillEmptyRowsGrad")
def row_gradients(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Some rows were filled, and none."""
    yield Sample([_i64(0, 2, 3), rng.normal((5,))], {}, "plain", grad=False)
    yield Sample([_i64(0, 1), rng.normal((2,))], {}, "full", grad=False)


@error_samples("SparseToDense")
def bad_dense() -> Iterator[ErrorSample]:
    """Cells out of order, repeated, outside; parts that do not fit."""
    three, zero, size = np.ones(3, np.float32), np.float32(0), _i64(2, 3)
    for cells, match in (
        (_CELLS[::-1].copy(), r"indices\[1\] = \[1,0\] is out of order"),
        (_CELLS[[0, 1, 1]], r"indices\[2\] = \[1,0\] is repeated"),
        (_CELLS * 2, r"indices\[1\] = \[2,0\] is out of bounds"),
    ):
        yield ErrorSample([cells, size, three, zero], match=match)
    yield ErrorSample([_CELLS, size, three[:2], zero], match="sparse_values has incorrect shape")
    yield ErrorSample([_CELLS, _i64(6), three, zero], match="incorrect number of elements")
    yield ErrorSample([_CELLS, size, three, three], match="default_value should be a scalar")
    loose = {"validate_indices": False}
    yield ErrorSample([_CELLS * 2, size, three, zero], loose, match="Indices are not valid")


@error_samples("SparseReshape")
def bad_shape() -> Iterator[ErrorSample]:
    """Other numbers of elements, two open sizes, a matrix for a shape."""
    size = _i64(2, 3)
    for wanted, match in (
        (_i64(4), "dense values, but the requested shape has 4"),
        (_i64(4, -1), "requires a multiple of 4"), (_i64(-1, -1), "only one output dimension"),
        (_i64(-2), "must be non-negative"), (_i64(0, -1), "cannot infer the missing"),
        (np.ones((1, 2), np.int64), "Target shape should be a vector"),
    ):  # fmt: skip
        yield ErrorSample([_CELLS, size, wanted], match=match)


@error_samples("SparseConcat")
def bad_joins() -> Iterator[ErrorSample]:
    """Sizes that differ, an axis that is none."""
    cells, values = [_CELLS, _CELLS], [np.ones(3, np.float32)] * 2
    differ, same = [_i64(2, 3), _i64(3, 3)], [_i64(2, 3)] * 2
    yield ErrorSample([cells, values, differ], {"concat_dim": 1}, match="Input shapes must match")
    yield ErrorSample([cells, values, same], {"concat_dim": 2}, match="Concat dimension must be")


@error_samples("SparseSplit")
def bad_parts() -> Iterator[ErrorSample]:
    """More parts than there are rows."""
    args = [np.int64(0), _CELLS, np.ones(3, np.float32), _i64(2, 3)]
    yield ErrorSample(args, {"num_split": 3}, match="Input num_split should be between 1")


@error_samples("SparseFillEmptyRows")
def bad_rows() -> Iterator[ErrorSample]:
    """A cell in a row that is not there."""
    args = [_CELLS, np.ones(3, np.float32), _i64(1, 3), np.float32(0)]
    yield ErrorSample(args, match=r"indices\(1, 0\) is invalid: 1 >= 1")
