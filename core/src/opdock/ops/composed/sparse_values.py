"""`tf.sparse`: arithmetic, reductions, products and serial forms of sparse tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.composite import SparseTensor, SparseTensorValue
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.ops import sparse_math, sparse_reduce, sparse_serial
from opdock.ops.array import expand_dims
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.sparse import as_sparse, sparse_reorder, sparse_tensor_to_dense
from opdock.ops.fill import fill, range
from opdock.ops.joining import concat
from opdock.ops.registry import OpSpec, get
from opdock.ops.support import array_util

__all__ = [
    "deserialize_many_sparse", "serialize_many_sparse", "serialize_sparse", "sparse_add",
    "sparse_maximum", "sparse_merge", "sparse_minimum", "sparse_reduce_max",
    "sparse_reduce_max_sparse", "sparse_reduce_sum", "sparse_reduce_sum_sparse", "sparse_softmax",
    "sparse_tensor_dense_matmul", "sparse_to_indicator",
]  # fmt: skip

_SPARSE = (SparseTensor, SparseTensorValue)


# ---------------------------------------------------------------- sums, extremes, products
def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two sparse tensors, or of a sparse and a dense one.

    Args:
        a: a SparseTensor or a Tensor.
        b: the same; one of them is sparse.
        threshold: where both have a cell and the sum is smaller in magnitude, there is no cell.
        thresh: deprecated name of `threshold`.

    Returns:
        A SparseTensor, or a Tensor if one side is dense.

    Raises:
        TypeError: both are dense.
        ValueError: the shapes are known and differ.
    """
    threshold = array_util.renamed("threshold", threshold, "thresh", thresh)
    threshold = 0 if threshold is None else threshold
    if not isinstance(a, _SPARSE) and not isinstance(b, _SPARSE):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not (isinstance(a, _SPARSE) and isinstance(b, _SPARSE)):
        sparse, dense = (a, b) if isinstance(a, _SPARSE) else (b, a)
        sparse = as_sparse(sparse)
        return sparse_math.dense_add_op(sparse.indices, sparse.values, sparse.dense_shape, dense)
    a, b = as_sparse(a), as_sparse(b)
    limit = convert_to_tensor(threshold, a.dtype.real_dtype.base_dtype, "threshold")
    indices, values, dense = sparse_math.add_op(
        a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, limit
    )
    a.get_shape().assert_is_compatible_with(b.get_shape())
    known = shapes.merge(shapes.as_shape(a.get_shape()), shapes.as_shape(b.get_shape()))
    if shapes.is_fully_defined(known):
        dense = list(known or ())
    return SparseTensor(indices, values, dense)


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger value of two sparse tensors at each cell that either has.

    Args:
        sp_a: a SparseTensor of real numbers with its cells in order.
        sp_b: another of the same type and shape.
        name: a name for the operation.
    """
    return _extreme(sparse_math.maximum_op, sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller value of two sparse tensors at each cell that either has.

    Args:
        sp_a: a SparseTensor of real numbers with its cells in order.
        sp_b: another of the same type and shape.
        name: a name for the operation.
    """
    return _extreme(sparse_math.minimum_op, sp_a, sp_b, name)


def _extreme(op: OpSpec, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    a, b = as_sparse(sp_a), as_sparse(sp_b)
    with name_scope(name, op.name, [a.indices, a.values, b.indices, b.values]) as scope:
        indices, values = op(
            a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, name=scope
        )
    return SparseTensor(indices, values, a.dense_shape)


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax over the cells of each innermost row; absent cells have no share.

    Args:
        sp_input: a SparseTensor of float32 or float64 with rank 2 or more.
        name: a prefix for the names of the operations.
    """
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseSoftmax", [sp_input.indices, sp_input.values]):
        values = sparse_math.softmax_op(sp_input.indices, sp_input.values, sp_input.dense_shape)
        return SparseTensor(sp_input.indices, values, sp_input.dense_shape)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse matrix and a dense one.

    Args:
        sp_a: a SparseTensor of rank 2.
        b: a matrix of the same type.
        adjoint_a: whether `sp_a` is transposed, and conjugated if it is complex.
        adjoint_b: the same of `b`.
        name: a prefix for the names of the operations.

    Raises:
        TypeError: `sp_a` is no SparseTensor.
        ValueError: the sizes are known and do not fit.
    """
    sp_a = as_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp_a.indices, sp_a.values, b]):
        b = convert_to_tensor(b, name="b")
        return sparse_math.matmul_op(  # type: ignore[no-any-return]
            sp_a.indices, sp_a.values, sp_a.dense_shape, b, adjoint_a=adjoint_a,
            adjoint_b=adjoint_b,
        )  # fmt: skip


# ---------------------------------------------------------------- reductions
_REDUCED = {
    "sp_input": "a SparseTensor.",
    "axis": "the dimensions to reduce, an integer or a list; all by default.",
    "keepdims": "whether they stay, with size one.",
    "reduction_axes": "deprecated name of `axis`.",
    "keep_dims": "deprecated name of `keepdims`.",
}


def _reduce(
    op: OpSpec, sp_input: Any, axis: Any, keepdims: Any, reduction_axes: Any, keep_dims: Any
) -> Any:
    keep = array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims)
    axes = array_util.renamed("axis", axis, "reduction_axes", reduction_axes)
    sp_input = as_sparse(sp_input)
    if axes is None:
        known = sp_input.get_shape().ndims
        axes = range(get("Size")(sp_input.dense_shape)) if known is None else np.arange(known)
    axes = convert_to_tensor(axes) if isinstance(axes, Tensor) else np.asarray(axes, np.int32)
    return op(
        sp_input.indices, sp_input.values, sp_input.dense_shape, axes, keep_dims=bool(keep or False)
    )


@explained(_REDUCED, returns="A dense tensor; zero where no cell was.")
def sparse_reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """The sums of cells along dimensions."""
    return _reduce(sparse_reduce.sum_op, sp_input, axis, keepdims, reduction_axes, keep_dims)  # type: ignore[no-any-return]


@explained(_REDUCED, returns="A dense tensor; zero where no cell was.")
def sparse_reduce_max(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """The largest cells along dimensions; absent ones do not count as zeros."""
    return _reduce(sparse_reduce.max_op, sp_input, axis, keepdims, reduction_axes, keep_dims)  # type: ignore[no-any-return]


@explained(_REDUCED, returns="A SparseTensor.")
def sparse_reduce_sum_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None,
    keep_dims: Any = None,
) -> SparseTensor:  # fmt: skip
    """The sums of cells along dimensions."""
    op = sparse_reduce.sum_sparse_op
    return SparseTensor(*_reduce(op, sp_input, axis, keepdims, reduction_axes, keep_dims))


@explained(_REDUCED, returns="A SparseTensor.")
def sparse_reduce_max_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None,
    keep_dims: Any = None,
) -> SparseTensor:  # fmt: skip
    """The largest cells along dimensions; absent ones do not count as zeros."""
    op = sparse_reduce.max_sparse_op
    return SparseTensor(*_reduce(op, sp_input, axis, keepdims, reduction_axes, keep_dims))


# ---------------------------------------------------------------- ids as coordinates
def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Which ids occur in each innermost row.

    Args:
        sp_input: a SparseTensor of int32 or int64 ids.
        vocab_size: the number of ids, an integer or a tensor.
        name: a name for the operation.

    Returns:
        A bool tensor in which the last dimension of `sp_input` is replaced by the ids.
    """
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sp_input.indices]) as scope:
        count = shape_of(sp_input.indices)[0]
        marks = SparseTensor(
            sp_input.indices, fill(expand_dims(count, 0), True), sp_input.dense_shape
        )
        merged = sparse_merge(sp_input, marks, vocab_size)
        return sparse_tensor_to_dense(
            merged, default_value=False, validate_indices=False, name=scope
        )


def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Values at the places that ids name: the last coordinate is replaced by the id.

    Args:
        sp_ids: a SparseTensor of int32 or int64 ids, or a list of them for several coordinates.
        sp_values: a SparseTensor with the same cells.
        vocab_size: the number of ids, an integer or a tensor; a list if `sp_ids` is one.
        name: a prefix for the names of the operations.
        already_sorted: whether the result needs no sorting.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: `sp_ids` and `vocab_size` are lists of different lengths.
    """
    if isinstance(sp_ids, _SPARSE):
        sp_ids, sizes = [sp_ids], [_checked_size(vocab_size, "Tensor or Python int")]
    else:
        if not isinstance(sp_ids, Iterable):
            raise TypeError(
                f"sp_ids has to be a SparseTensor or list thereof. Found {type(sp_ids)}"
            )
        kind = "list of Tensors or Python ints"
        if not isinstance(vocab_size, Iterable) or isinstance(vocab_size, Tensor):
            raise TypeError(f"vocab_size has to be a {kind}. Found {type(vocab_size)}")
        sp_ids, sizes = list(sp_ids), [_checked_size(n, kind) for n in vocab_size]
    if len(sp_ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    with name_scope(name, "SparseMerge"):
        ids, values = [as_sparse(i) for i in sp_ids], as_sparse(sp_values)
        columns = [expand_dims(cast(i.values, dtypes.int64), axis=1) for i in ids]
        indices = concat([ids[0].indices[:, :-1], *columns], 1)
        tail = [cast(n, dtypes.int64) for n in sizes]
        dense = concat([ids[0].dense_shape[:-1], tail], 0)
        merged = SparseTensor(indices, values.values, dense)
        if already_sorted:
            return merged
        in_order = sparse_reorder(merged)
        return SparseTensor(in_order.indices, in_order.values, dense)


def _checked_size(value: Any, kind: str) -> Any:
    if not isinstance(value, (Tensor, int, np.integer)):
        raise TypeError(f"vocab_size has to be a {kind}. Found {type(value)}")
    return value


# ---------------------------------------------------------------- serial forms
def sparse_dense_cwise_add(sp_t: SparseTensor, dense_t: Any) -> SparseTensor:
    """The cells of a sparse tensor, to which those of a dense one are added that are there too.

    Args:
        sp_t: a SparseTensor.
        dense_t: a tensor of its shape, or one that can be broadcast to it.
    """
    indices, dense_shape = sp_t.indices, sp_t.dense_shape
    values = get("SparseDenseCwiseAdd")(indices, sp_t.values, dense_shape, dense_t)
    return SparseTensor(indices, values, dense_shape)


@extensible
def serialize_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """A sparse tensor as a vector of its three parts.

    Args:
        sp_input: a SparseTensor.
        name: a name for the operation.
        out_type: `tf.string`, or `tf.variant` for parts that never leave the process.
    """
    return _serialize(sparse_serial.serialize_op, sp_input, out_type, name)


@extensible
def serialize_many_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """The entries of a sparse tensor along its first dimension, a row of three parts each.

    Args:
        sp_input: a SparseTensor of rank 2 or more.
        name: a name for the operation.
        out_type: `tf.string`, or `tf.variant` for parts that never leave the process.
    """
    return _serialize(sparse_serial.serialize_many_op, sp_input, out_type, name)


def _serialize(op: OpSpec, sp_input: Any, out_type: Any, name: str | None) -> Tensor:
    value = as_sparse(sp_input)
    return op(value.indices, value.values, value.dense_shape, out_type=out_type, name=name)  # type: ignore[no-any-return]


def deserialize_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor that `serialize_sparse` made, or one of all those that are given.

    Args:
        serialized_sparse: a tensor [..., 3] of strings or variants.
        dtype: the type of the values.
        rank: the rank of the result, if it is known.
        name: a name for the operation.
    """
    op = sparse_serial.deserialize_op
    return _ranked(op(serialized_sparse, dtype=dtypes.as_dtype(dtype), name=name), rank)


@extensible
def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """One sparse tensor of several that were serialized, with a dimension more.

    Args:
        serialized_sparse: a string matrix [n, 3].
        dtype: the type of the values.
        rank: the rank of the result, if it is known.
        name: a name for the operation.
    """
    op = sparse_serial.deserialize_many_op
    return _ranked(op(serialized_sparse, dtype=dtypes.as_dtype(dtype), name=name), rank)


def _ranked(parts: Any, rank: int | None) -> SparseTensor:
    indices, values, dense = parts
    indices.set_shape([None, rank])
    dense.set_shape([rank])
    return SparseTensor(indices, values, dense)


def add_sparse_to_tensors_map(
    sp_input: Any,
    container: str | None = None,
    shared_name: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Keeps a sparse tensor in a map of the session; an int64 handle names it.

    Args:
        sp_input: a SparseTensor.
        container: the map's container.
        shared_name: the map's name, that of the node by default.
        name: a name for the operation.
    """
    value = as_sparse(sp_input)
    return sparse_serial.add_to_map_op(  # type: ignore[no-any-return]
        value.indices, value.values, value.dense_shape, container=container or "",
        shared_name=shared_name or "", name=name,
    )  # fmt: skip


def add_many_sparse_to_tensors_map(
    sp_input: Any,
    container: str | None = None,
    shared_name: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Keeps the entries of a sparse tensor in a map of the session; a handle names each.

    Args:
        sp_input: a SparseTensor of rank 2 or more.
        container: the map's container.
        shared_name: the map's name, that of the node by default.
        name: a name for the operation.
    """
    value = as_sparse(sp_input)
    return sparse_serial.add_many_to_map_op(  # type: ignore[no-any-return]
        value.indices, value.values, value.dense_shape, container=container or "",
        shared_name=shared_name or "", name=name,
    )  # fmt: skip


def take_many_sparse_from_tensors_map(
    sparse_map_op: Any, sparse_handles: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """One sparse tensor of several that are in a map, and no longer.

    Args:
        sparse_map_op: the operation that put them there.
        sparse_handles: their handles, an int64 vector.
        rank: the rank of the result, if it is known.
        name: a name for the operation.

    Raises:
        TypeError: `sparse_map_op` is no such operation.
    """
    if not isinstance(sparse_map_op, Operation):
        raise TypeError("sparse_map_op be an Operation")
    adders = (sparse_serial.add_to_map_op.name, sparse_serial.add_many_to_map_op.name)
    if sparse_map_op.type not in adders:
        raise TypeError(
            "sparse_map_op must be one of AddSparseToTensorsMap or AddManySparseToTensorsMap. "
            f"Instead, found `{sparse_map_op.type}`."
        )
    with colocate_with(sparse_map_op):
        attrs = sparse_map_op.attrs
        shared = attrs["shared_name"] or sparse_map_op.name
        parts = sparse_serial.take_from_map_op(
            sparse_handles, dtype=attrs["T"], container=attrs["container"], shared_name=shared,
            name=name,
        )  # fmt: skip
    return _ranked(parts, rank)
