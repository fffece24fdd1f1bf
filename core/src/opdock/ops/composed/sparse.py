"""`tf.sparse`: sparse tensors reordered, reshaped, joined, sliced, filled and made dense."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import SparseTensor, SparseTensorValue
from opdock.graph.nodes.constant_value import constant_value, known_shape
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops import sparse_layout as layout
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import reshape
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_less_equal
from opdock.ops.compare import not_equal
from opdock.ops.control import with_dependencies
from opdock.ops.fill import ones, range, zeros
from opdock.ops.gather import gather, gather_nd
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_max
from opdock.ops.registry import get
from opdock.ops.support import array_util

__all__ = [
    "sparse_concat", "sparse_fill_empty_rows", "sparse_reorder", "sparse_reset_shape",
    "sparse_reshape", "sparse_retain", "sparse_slice", "sparse_split", "sparse_tensor_to_dense",
    "sparse_transpose",
]  # fmt: skip


def as_sparse(value: Any) -> SparseTensor:
    """`value` as a SparseTensor; TypeError unless it is one or the value of one."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def static_sizes(value: SparseTensor) -> list[int] | None:
    """The dense shape if all of it is known."""
    known = value.get_shape()
    return [int(n) for n in known.as_list()] if known.is_fully_defined() else None  # type: ignore[arg-type]


# ---------------------------------------------------------------- made of others
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The cells of a dense tensor that are not zero.

    Args:
        tensor: a tensor of any type.
        name: a prefix for the names of the operations.

    Returns:
        A SparseTensor.
    """
    with name_scope(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        zero = b"" if tensor.dtype.base_dtype is dtypes.string else 0
        indices = get("Where")(not_equal(tensor, convert_to_tensor(zero, tensor.dtype.base_dtype)))
        values = gather_nd(tensor, indices)
        return SparseTensor(indices, values, shape_of(tensor, out_type=dtypes.int64))


def sparse_eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """A sparse matrix with ones along its diagonal.

    Args:
        num_rows: an integer, or an integer scalar.
        num_columns: the same; `num_rows` by default.
        dtype: the type of the values.
        name: a prefix for the names of the operations.

    Raises:
        TypeError: a size is neither an integer nor a tensor.
    """
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = _count(num_rows, "num_rows")
        columns = rows if num_columns is None else _count(num_columns, "num_columns")
        size = minimum(rows, columns)
        diagonal = range(size, dtype=dtypes.int64)
        indices = stack([diagonal, diagonal], axis=1)
        return SparseTensor(indices, ones(reshape(size, [1]), dtype=dtype), stack([rows, columns]))


def _count(value: Any, name: str) -> Tensor:
    if isinstance(value, (int, np.integer)):
        return convert_to_tensor(int(value), dtypes.int64, name)
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be an integer value")
    return value if value.dtype is dtypes.int64 else cast(value, dtypes.int64)


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor with a dimension of size one more.

    Args:
        sp_input: a SparseTensor.
        axis: where the dimension is inserted, an integer or a tensor in [-rank - 1, rank]; at the
            end by default.
        name: a prefix for the names of the operations.

    Raises:
        TypeError: the axis is neither an integer nor a tensor.
    """
    sp_input = as_sparse(sp_input)
    rank = shapes.dimension_value(sp_input.dense_shape.get_shape()[0])
    axis = -1 if axis is None else axis
    with name_scope(name, "expand_dims", [sp_input.indices]):
        if isinstance(axis, (int, np.integer)):
            axis = convert_to_tensor(int(axis), dtypes.int32, "axis")
        elif not isinstance(axis, Tensor):
            raise TypeError(
                "axis must be an integer value in range [-rank(sp_input) - 1, rank(sp_input)]"
            )
        rank = get("Size")(sp_input.dense_shape) if rank is None else rank
        at = get("Select")(axis >= 0, axis, axis + rank + 1)
        column = zeros(stack([shape_of(sp_input.indices)[0], 1]), dtypes.int64)
        indices = concat([sp_input.indices[:, :at], column, sp_input.indices[:, at:]], 1)
        one = convert_to_tensor([1], dtypes.int64, "new_shape")
        dense = concat([sp_input.dense_shape[:at], one, sp_input.dense_shape[at:]], 0)
        return SparseTensor(indices, sp_input.values, dense)


# ---------------------------------------------------------------- order and shape
def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same cells in row-major order.

    Args:
        sp_input: a SparseTensor.
        name: a name for the operation.
    """
    sp_input = as_sparse(sp_input)
    indices, values = layout.reorder_op(
        sp_input.indices, sp_input.values, sp_input.dense_shape, name=name
    )
    known = static_sizes(sp_input)
    return SparseTensor(indices, values, identity(sp_input.dense_shape) if known is None else known)


@extensible
def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same cells in another shape of as many elements.

    Args:
        sp_input: a SparseTensor.
        shape: the new shape, an integer vector; one of its entries may be -1.
        name: a name for the operation.

    Raises:
        ValueError: the numbers of elements are known and differ, or several entries are -1.
    """
    sp_input = as_sparse(sp_input)
    shape = cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape", [sp_input.indices]) as scope:
        indices, dense = layout.reshape_op(
            sp_input.indices, sp_input.dense_shape, shape, name=scope
        )
        found = _reshaped(static_sizes(sp_input), shape)
        if found is not None:
            dense = convert_to_tensor(found, dtypes.int64)
        return SparseTensor(indices, identity(sp_input.values), dense)


def _reshaped(old: list[int] | None, shape: Tensor) -> list[int] | None:
    """The new shape if it is known; ValueError if it does not fit the old one."""
    given, wanted = constant_value(shape), known_shape(shape)
    if given is not None and int((given == -1).sum()) > 1 and old is not None:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {given}")
    if old is None or wanted is None or wanted.count(None) > 1:
        return None
    total = int(np.prod(old, dtype=object))
    rest = int(np.prod([n for n in wanted if n is not None], dtype=object))
    full = [total // rest if n is None and rest else n or 0 for n in wanted]
    size = int(np.prod(full, dtype=object))
    if size != total:
        raise ValueError(
            f"Cannot reshape a tensor with {total} elements to shape {list(wanted)} ({size} "
            "elements)."
        )
    return full


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor with its dimensions in another order; the cells are sorted.

    Args:
        sp_input: a SparseTensor.
        perm: the order; the reverse by default.
        name: a prefix for the names of the operations.
    """
    with name_scope(name, "SparseTranspose", [sp_input.indices]):
        sp_input = as_sparse(sp_input)
        if perm is None:
            rank = get("Size")(sp_input.dense_shape)
            known = sp_input.get_shape().ndims
            perm = rank - 1 - range(0, rank) if known is None else list(np.arange(known)[::-1])
        indices = transpose(gather(transpose(sp_input.indices), perm))
        order, old = constant_value(convert_to_tensor(perm)), static_sizes(sp_input)
        dense: Any = gather(sp_input.dense_shape, perm)
        if order is not None and old is not None:
            dense = [old[int(i)] for i in order]
        return sparse_reorder(SparseTensor(indices, sp_input.values, dense))


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same cells in another dense shape, in which they keep their places.

    Args:
        sp_input: a SparseTensor.
        new_shape: a shape no smaller than the old one; by default the tightest one.

    Raises:
        TypeError: `sp_input` is no SparseTensor.
        ValueError: the new shape is known to be too small or of another rank.
        tf.errors.InvalidArgumentError: at run time, in the same cases.
    """
    sp_input = as_sparse(sp_input)
    indices, values = identity(sp_input.indices), identity(sp_input.values)
    old = identity(sp_input.dense_shape)
    if new_shape is None:
        tight = reduce_max(indices, axis=0) + get("OnesLike")(old)
        return SparseTensor(indices, values, maximum(convert_to_tensor(0, dtypes.int64), tight))
    wanted: Any = convert_to_tensor(new_shape)
    length = shapes.with_rank(wanted.raw_shape, 1)
    wanted = cast(wanted, dtypes.int64)
    shapes.merge_dim(length[0], shapes.with_rank(old.raw_shape, 1)[0])
    given, sizes = constant_value(wanted), static_sizes(sp_input)
    if given is not None and sizes is not None:
        if not (np.array(sizes) <= given).all():
            raise ValueError(
                "Requested new_shape should have dimension sizes >= sp_input.shape.  Found "
                f"new_shape ({given}), sp_input.shape ({sizes})."
            )
        return SparseTensor(indices, values, given)
    same_rank = assert_equal(shape_of(old), shape_of(wanted))
    wanted = with_dependencies([same_rank], wanted)
    # So far as both go: vectors of different lengths are what the first assertion is about.
    n = minimum(get("Size")(old), get("Size")(wanted))
    wanted = with_dependencies([assert_less_equal(old[:n], wanted[:n])], wanted)
    return SparseTensor(indices, values, wanted)


# ---------------------------------------------------------------- parts and joins
def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The cells in a box, with their places in it.

    Args:
        sp_input: a SparseTensor.
        start: the corner of the box, an int64 vector.
        size: its extent; what is beyond the shape is cut off.
        name: a name for the operation.
    """
    sp_input = as_sparse(sp_input)
    start, size = convert_to_tensor(start, dtypes.int64), convert_to_tensor(size, dtypes.int64)
    with name_scope(name, "SparseSlice", [sp_input.indices]) as scope:
        parts = layout.slice_op(
            sp_input.indices, sp_input.values, sp_input.dense_shape, start, size, name=scope
        )
        return SparseTensor(*parts)


class _KeywordsOnly:
    """Stands where no argument may stand."""


_KEYWORDS_ONLY: Final = _KeywordsOnly()


def sparse_split(
    keyword_required: Any = _KEYWORDS_ONLY,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Parts of a sparse tensor along a dimension; the first are longer if it does not divide.

    Args:
        keyword_required: all arguments are keywords: nothing may be given here.
        sp_input: a SparseTensor.
        num_split: the number of parts.
        axis: the dimension, an integer or an integer scalar.
        name: a name for the operation.
        split_dim: deprecated name of `axis`.

    Raises:
        ValueError: an argument is missing, or was given by position.
    """
    if keyword_required is not _KEYWORDS_ONLY:
        raise ValueError("Keyword arguments are required for this function.")
    if sp_input is None:
        raise ValueError("sp_input is required")
    if num_split is None:
        raise ValueError("num_split is required")
    axis = array_util.renamed("axis", axis, "split_dim", split_dim)
    if axis is None:
        raise ValueError("axis is required")
    sp_input = as_sparse(sp_input)
    indices, values, dense = layout.split_op(
        axis, sp_input.indices, sp_input.values, sp_input.dense_shape, num_split=num_split,
        name=name,
    )  # fmt: skip
    return [SparseTensor(*parts) for parts in zip(indices, values, dense, strict=True)]


def sparse_concat(
    axis: Any = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: Any = None,
) -> SparseTensor:
    """Sparse tensors joined along a dimension; the cells are sorted.

    Args:
        axis: the dimension, an integer.
        sp_inputs: a list or tuple of SparseTensors of one type and rank.
        name: a name for the operation.
        expand_nonconcat_dim: whether other dimensions may differ; the result has the largest.
        concat_dim: deprecated name of `axis`.
        expand_nonconcat_dims: another name of `expand_nonconcat_dim`.

    Raises:
        TypeError: `sp_inputs` is no list or tuple of SparseTensors.
        ValueError: an argument is given under both of its names.
    """
    axis = array_util.renamed("axis", axis, "concat_dim", concat_dim)
    if expand_nonconcat_dims is not None:
        if expand_nonconcat_dim:
            raise ValueError(
                "Cannot specify both 'expand_nonconcat_dim' and 'expand_nonconcat_dims'"
            )
        expand_nonconcat_dim = expand_nonconcat_dims
    if not isinstance(sp_inputs, (list, tuple)):
        raise TypeError("Inputs must be a list or tuple.")
    parts = [as_sparse(value) for value in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    sizes = [part.dense_shape for part in parts]
    if expand_nonconcat_dim:
        largest = reduce_max(concat([reshape(s, [1, -1]) for s in sizes], 0), 0)
        sizes = [_with_size_of(largest, s, axis) for s in sizes]
    indices, values, dense = layout.concat_op(
        [p.indices for p in parts], [p.values for p in parts], sizes, concat_dim=axis, name=name
    )
    known = [constant_value(s) for s in sizes]
    if known and all(s is not None for s in known):
        whole = np.array(known[0])
        whole[axis] = sum(s[axis] for s in known if s is not None)
        dense = convert_to_tensor(whole)
    return SparseTensor(indices, values, dense)


def _with_size_of(largest: Tensor, own: Tensor, axis: int) -> Tensor:
    """The largest sizes, but for the dimension along which parts are joined."""
    after = [] if axis == -1 else [largest[axis + 1 :]]
    this = own[-1:] if axis == -1 else own[axis : axis + 1]
    return concat([largest[:axis], this, *after], 0)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Some of the cells.

    Args:
        sp_input: a SparseTensor.
        to_retain: a bool vector with an entry for each cell.

    Raises:
        TypeError: `sp_input` is no SparseTensor.
        ValueError: `to_retain` is no vector of that length.
    """
    sp_input = as_sparse(sp_input)
    keep = convert_to_tensor(to_retain)
    length = shapes.with_rank(keep.raw_shape, 1)[0]
    shapes.merge_dim(length, shapes.with_rank(sp_input.values.raw_shape, 1)[0])
    kept = reshape(get("Where")(keep), [-1])
    return SparseTensor(
        gather(sp_input.indices, kept), gather(sp_input.values, kept),
        identity(sp_input.dense_shape),
    )  # fmt: skip


# ---------------------------------------------------------------- rows and dense forms
def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Gives each row that has no cell one in its first column.

    Args:
        sp_input: a SparseTensor.
        default_value: the value of the cells that are added.
        name: a prefix for the names of the operations.

    Returns:
        (the SparseTensor with its rows filled, a bool vector that tells which were empty).
    """
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sp_input.indices]):
        default = convert_to_tensor(default_value, sp_input.values.dtype)
        indices, values, was_empty, _ = layout.fill_empty_rows_op(
            sp_input.indices, sp_input.values, sp_input.dense_shape, default
        )
        return SparseTensor(indices, values, sp_input.dense_shape), was_empty


def sparse_tensor_to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The dense form of a sparse tensor.

    Args:
        sp_input: a SparseTensor.
        default_value: the value of absent cells, zero by default.
        validate_indices: whether the cells must be in order, without repetition.
        name: a name for the operation.

    Raises:
        TypeError: `sp_input` is no SparseTensor.
        tf.errors.InvalidArgumentError: at run time, for cells outside of the shape or out of order.
    """
    sp_input = as_sparse(sp_input)
    if default_value is None:
        default_value = zeros([], dtype=sp_input.dtype.base_dtype)
    dense: Tensor = layout.sparse_to_dense_op(
        sp_input.indices, sp_input.dense_shape, sp_input.values, default_value,
        validate_indices=validate_indices, name=name,
    )  # fmt: skip
    dense.set_shape(sp_input.shape)
    return dense
