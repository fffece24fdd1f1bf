"""Ragged tensors as tensors: rows picked by index, ranges of different lengths, cells.

The ops see a ragged tensor as its splits, outermost first, and its flat values. What programs see
is `tf.RaggedTensor`, in `composed/ragged_tensor.py`.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Operation
from opdock.ops.array import reshape, shape
from opdock.ops.gather import gather
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []

gather_op = define_op(
    "RaggedGather",
    "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, "
    "indices: Tindices -> output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, "
    "output_dense_values: Tvalues",
    "Tvalues: type, Tindices: {int32, int64}, Tsplits: {int32, int64} = DT_INT64, "
    "PARAMS_RAGGED_RANK: int >= 1, OUTPUT_RAGGED_RANK: int >= 0",
)
range_op = define_op(
    "RaggedRange",
    "starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits, rt_dense_values: T",
    "T: {bfloat16, float, double, int32, int64} = DT_INT32, Tsplits: {int32, int64} = DT_INT64",
).not_differentiable()
to_sparse_op = define_op(
    "RaggedTensorToSparse",
    "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T "
    "-> sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    "RAGGED_RANK: int >= 1, T: type, Tsplits: {int32, int64} = DT_INT64",
)

to_variant_op = define_op(
    "RaggedTensorToVariant",
    "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues -> encoded_ragged: variant",
    "RAGGED_RANK: int >= 1, Tvalues: type, Tsplits: {int32, int64}, batched_input: bool",
).not_differentiable()
from_variant_op = define_op(
    "RaggedTensorFromVariant",
    "encoded_ragged: variant -> output_nested_splits: output_ragged_rank * Tsplits, "
    "output_dense_values: Tvalues",
    "input_ragged_rank: int >= -1, output_ragged_rank: int >= 1, Tvalues: type, "
    "Tsplits: {int32, int64}",
).not_differentiable()


# ---------------------------------------------------------------- shapes
@gather_op.shape
def _gather_shape(sig: ShapeSig) -> list[Shape]:
    depth, found = sig.attrs["PARAMS_RAGGED_RANK"], sig.attrs["OUTPUT_RAGGED_RANK"]
    shapes.with_rank(sig.shapes[-1], found - depth + 1)
    for splits in sig.shapes[:depth]:
        shapes.with_rank(splits, 1)
    values = shapes.with_rank_at_least(sig.shapes[depth], 1)
    rest = array_util.subshape(values, 1)
    return [*([(None,)] * found), shapes.concat((None,), rest)]


@range_op.shape
def _range_shape(sig: ShapeSig) -> list[Shape]:
    rows: int | None = None
    for given in sig.shapes:
        known = shapes.with_rank_at_most(given, 1)
        if known:
            rows = shapes.merge_dim(rows, known[0])
    if all(given == () for given in sig.shapes):
        rows = 1
    return [(array_util.add(rows, 1),), (None,)]


@to_sparse_op.shape
def _to_sparse_shape(sig: ShapeSig) -> list[Shape]:
    *splits, values = sig.shapes
    shapes.with_rank_at_least(values, 1)
    for given in splits:
        shapes.with_rank(given, 1)
    rank = None if values is None else len(values) + len(splits)
    count = shapes.num_elements(values)
    return [(count, rank), (count,), (rank,)]


@to_variant_op.shape
def _to_variant_shape(sig: ShapeSig) -> Shape:
    *splits, values = sig.shapes
    shapes.with_rank_at_least(values, 1)
    outer, *_ = [shapes.with_rank(given, 1) for given in splits]
    if not sig.attrs["batched_input"]:
        return ()
    return (array_util.add(None if outer is None else outer[0], -1),)


@from_variant_op.shape
def _from_variant_shape(sig: ShapeSig) -> list[Shape]:
    inner, outer = sig.attrs["input_ragged_rank"], sig.attrs["output_ragged_rank"]
    if inner >= 0:
        shapes.with_rank(sig.shapes[0], outer - inner)
    return [*([(None,)] * outer), None]


# ---------------------------------------------------------------- gradients
@gather_op.gradient
def _gather_gradient(op: Operation, *grads: Any) -> list[Any]:
    *splits, values, indices = op.inputs
    # Where the flat values of each row begin.
    starts = splits[0]
    for inner in splits[1:]:
        starts = gather(inner, starts)
    rows = reshape(indices, [-1])
    picked = range_op(gather(starts, rows), gather(starts[1:], rows), _one(starts))[1]
    return [*([None] * len(splits)), IndexedSlices(grads[-1], picked, shape(values)), None]


def _one(like: Any) -> Any:
    return constant(1, like.dtype)


@to_sparse_op.gradient
def _to_sparse_gradient(op: Operation, _: Any, grad: Any, _shape: Any) -> list[Any]:
    *splits, values = op.inputs
    return [*([None] * len(splits)), reshape(grad, shape(values))]
