"""Sparse tensors taken apart and laid out anew: order, shape, slices, joins, rows, dense form."""

from __future__ import annotations

import builtins
from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import reshape
from opdock.ops.fill import range
from opdock.ops.gather import gather, gather_nd
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.sets import invert_permutation
from opdock.ops.support import array_util, sparse_shapes
from opdock.shapes import Shape

__all__ = ["sparse_to_dense"]

sparse_to_dense_op = define_op(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T "
    "-> dense: T",
    "validate_indices: bool = true, T: type, Tindices: {int32, int64}",
)
reorder_op = define_op(
    "SparseReorder",
    "input_indices: int64, input_values: T, input_shape: int64 "
    "-> output_indices: int64, output_values: T",
    "T: type",
)
reshape_op = define_op(
    "SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64 "
    "-> output_indices: int64, output_shape: int64",
).not_differentiable()
slice_op = define_op(
    "SparseSlice",
    "indices: int64, values: T, shape: int64, start: int64, size: int64 "
    "-> output_indices: int64, output_values: T, output_shape: int64",
    "T: type",
)
slice_grad_op = define_op(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64 "
    "-> val_grad: T",
    "T: numbertype",
)
concat_op = define_op(
    "SparseConcat",
    "indices: N * int64, values: N * T, shapes: N * int64 "
    "-> output_indices: int64, output_values: T, output_shape: int64",
    "concat_dim: int, N: int >= 2, T: type",
).not_differentiable()
split_op = define_op(
    "SparseSplit",
    "split_dim: int64, indices: int64, values: T, shape: int64 "
    "-> output_indices: num_split * int64, output_values: num_split * T, "
    "output_shape: num_split * int64",
    "num_split: int >= 1, T: type",
)
fill_empty_rows_op = define_op(
    "SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, "
    "output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    "T: type",
)
fill_empty_rows_grad_op = define_op(
    "SparseFillEmptyRowsGrad",
    "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T",
    "T: type",
)
for _op in (slice_grad_op, split_op, fill_empty_rows_grad_op):
    array_util.no_gradient(_op)


# ---------------------------------------------------------------- shapes
@sparse_to_dense_op.shape
def _dense_shape(sig: ShapeSig) -> Shape:
    array_util.vector_length(sig.shapes[1])
    return sig.const_shape(1)


@reorder_op.shape
def _reorder_shape(sig: ShapeSig) -> list[Shape]:
    sparse_shapes.check_ranks(*sig.shapes)
    return [sig.shapes[0], sig.shapes[1]]


@reshape_op.shape
def _reshape_shape(sig: ShapeSig) -> list[Shape]:
    indices = shapes.with_rank(sig.shapes[0], 2)
    shapes.with_rank(sig.shapes[1], 1)
    rank = shapes.with_rank(sig.shapes[2], 1)
    return [(indices[0], rank[0]), rank]


@slice_op.shape
def _slice_shape(sig: ShapeSig) -> list[Shape]:
    return [(None, shapes.num_elements(sig.shapes[2])), (None,), sig.shapes[2]]


@slice_grad_op.shape
def _slice_grad_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[1], 2)[:1]


@concat_op.shape
def _concat_shape(sig: ShapeSig) -> list[Shape]:
    n = len(sig.shapes) // 3
    rows: int | None = 0
    columns: int | None = None
    dense: Shape = None
    for i in builtins.range(n):
        indices, values = sig.shapes[i], sig.shapes[n + i]
        cells = shapes.with_rank(indices, 2)
        length = shapes.with_rank(sig.shapes[2 * n + i], 1)
        rows = array_util.add(rows, shapes.merge_dim(cells[0], array_util.vector_length(values)))
        columns = shapes.merge_dim(columns, cells[1])
        dense = shapes.merge(dense, length)
    return [(rows, columns), (rows,), dense]


@split_op.shape
def _split_shape(sig: ShapeSig) -> list[Shape]:
    n, dense = sig.n_outputs // 3, sig.shapes[3]
    cells: Shape = (None, shapes.num_elements(dense))
    values: Shape = (None,)
    return [cells] * n + [values] * n + [dense] * n


@fill_empty_rows_op.shape
def _fill_shape(sig: ShapeSig) -> list[Shape]:
    indices, values, dense, default = sig.shapes
    cells, row_count = sparse_shapes.check(indices, values, dense)
    shapes.with_rank(default, 0)
    sizes = sig.const_shape(2)
    rows = sizes[0] if sizes else None
    return [(None, cells), (None,), (rows,), (row_count,)]


@fill_empty_rows_grad_op.shape
def _fill_grad_shape(sig: ShapeSig) -> list[Shape]:
    array_util.vector_length(sig.shapes[1])
    return [shapes.with_rank(sig.shapes[0], 1), ()]


# ---------------------------------------------------------------- gradients
@sparse_to_dense_op.gradient
def _dense_gradient(op: Operation, grad: Any) -> list[Any]:
    indices = op.inputs[0]
    picked = gather_nd(grad, _as_cells(indices))
    # One value may stand for all cells.
    total = reduce_sum(picked)
    values = total if op.inputs[2].raw_shape == () else picked
    return [None, None, values, reduce_sum(grad) - total]


def _as_cells(indices: Tensor) -> Tensor:
    """Indices as a matrix: a vector of them stands for the cells of a vector."""
    known = indices.raw_shape
    if known is not None and len(known) < 2:
        return reshape(indices, [-1, 1])
    return indices


@reorder_op.gradient
def _reorder_gradient(op: Operation, _: Any, grad: Any) -> list[Any]:
    indices, _values, dense = op.inputs
    rows = range(get("Shape")(indices)[0])
    order = reorder_op(indices, rows, dense)[1]
    return [None, gather(grad, invert_permutation(order)), None]


@slice_op.gradient
def _slice_gradient(op: Operation, _: Any, grad: Any, _shape: Any) -> list[Any]:
    values = slice_grad_op(grad, op.inputs[0], op.inputs[3], op.outputs[0])
    values.set_shape(op.inputs[1].raw_shape)
    return [None, values, None, None, None]


@fill_empty_rows_op.gradient
def _fill_gradient(op: Operation, _: Any, grad: Any, *rest: Any) -> list[Any]:
    values, default = fill_empty_rows_grad_op(op.outputs[3], grad)
    return [None, values, None, default]


# ---------------------------------------------------------------- public functions
@extensible
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A dense tensor that has given values at given places, and one value everywhere else.

    Args:
        sparse_indices: int32 or int64: a row of coordinates for each value [n, rank]; a vector of
            n places of a vector; or one place of a vector.
        output_shape: the shape of the result, a vector of the same type.
        sparse_values: a value for each place, or one for all.
        default_value: the value elsewhere.
        validate_indices: whether places must ascend in row-major order without repetition.
        name: a name for the operation.

    Returns:
        A tensor of the type of `sparse_values`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when a place is outside of the shape, or places
            are out of order or repeated.
    """
    return sparse_to_dense_op(  # type: ignore[no-any-return]
        sparse_indices, output_shape, sparse_values, default_value,
        validate_indices=validate_indices, name=name,
    )  # fmt: skip
