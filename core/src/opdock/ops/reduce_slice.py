"""Reductions of ranges of rows, which may overlap (`tf.contrib.reduce_slice_ops`)."""

from __future__ import annotations

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Tensor
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.fill import fill
from opdock.ops.fill import range as numbers
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_prod, reduce_sum
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.scan import cumsum
from opdock.ops.select import where
from opdock.ops.sorting import searchsorted
from opdock.ops.support import array_util
from opdock.ops.unsorted_segment import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)
from opdock.shapes import Shape

__all__: list[str] = []


def _define(fold: str, types: str) -> OpSpec:
    return define_op(
        f"ReduceSlice{fold}", "data: T, indices: Tindices, axis: int64 -> output: T",
        f"T: {types}, Tindices: {{int32, int64}}",
    ).not_differentiable()  # fmt: skip


sum_op = _define("Sum", "numbertype")
prod_op = _define("Prod", "numbertype")
max_op = _define("Max", "realnumbertype")
min_op = _define("Min", "realnumbertype")

_FOLDS = {
    "ReduceSliceSum": unsorted_segment_sum, "ReduceSliceProd": unsorted_segment_prod,
    "ReduceSliceMax": unsorted_segment_max, "ReduceSliceMin": unsorted_segment_min,
}  # fmt: skip


@sum_op.shape
@prod_op.shape
@max_op.shape
@min_op.shape
def _shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[2], 0)
    data = shapes.with_rank_at_least(sig.shapes[0], 1)
    count = _count(sig.shapes[1])
    axis = array_util.const_int(sig, 2)
    if data is None:
        return None
    if axis is None:
        return (None,) * len(data)
    if not -len(data) <= axis < len(data):
        raise ValueError(f"axis {axis} is not one of a tensor of {len(data)} dimensions")
    axis %= len(data)
    return (*data[:axis], count, *data[axis + 1 :])


def _count(indices: Shape) -> int | None:
    """How many ranges there are: of pairs, or between neighbours in a vector."""
    if indices is None:
        return None
    if len(indices) not in (1, 2):
        raise ValueError(f"indices must be a vector or a matrix, not of shape {indices}")
    if len(indices) == 2:
        array_util.with_dim(indices[1], 2)
        return indices[0]
    return None if indices[0] is None else max(indices[0] - 1, 0)


@sum_op.decomposition
@prod_op.decomposition
@max_op.decomposition
@min_op.decomposition
def _parts(sig: ShapeSig, data: Tensor, indices: Tensor, axis: Tensor) -> Tensor:
    if data.raw_shape is None or indices.raw_shape is None:
        raise NotImplementedError("how many dimensions there are must be known")
    rank = len(data.raw_shape)
    axis = cast((axis + rank) % rank, dtypes.int32)
    sizes = shape(data)
    rows, inner = sizes[axis], reduce_prod(sizes[axis + 1 :])
    by_row = transpose(reshape(data, [-1, rows, inner]), [1, 0, 2])

    pairs = cast(indices, dtypes.int32)
    vector = len(indices.raw_shape) == 1
    starts, ends = (pairs[:-1], pairs[1:]) if vector else (pairs[:, 0], pairs[:, 1])
    lengths = maximum(minimum(ends, rows) - starts, 0)
    # Of each row that is part of a range: of which one, and which row it is.
    through = cumsum(lengths)
    places = numbers(reduce_sum(lengths))
    owners = searchsorted(through, places, side="right")
    picked = places + gather(starts - through + lengths, owners)

    count = shape(starts)[0]
    found = _FOLDS[sig.op](gather(by_row, picked), owners, count)
    if data.dtype.is_floating and sig.op in ("ReduceSliceMax", "ReduceSliceMin"):
        limit = -np.inf if sig.op == "ReduceSliceMax" else np.inf
        empty = fill(shape(found), constant(limit, data.dtype))
        found = where(lengths > 0, found, empty)
    wanted = concat([sizes[:axis], [count], sizes[axis + 1 :]], 0)
    return reshape(transpose(found, [1, 0, 2]), wanted)
