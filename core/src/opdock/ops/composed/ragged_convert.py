"""Ragged tensors from dense and sparse ones, and back."""

from __future__ import annotations

import builtins
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor, convert_to_tensor_or_sparse_tensor, is_sparse
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import broadcast_to, expand_dims, reshape
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import equal, logical_and, logical_not, not_equal
from opdock.ops.composed.masks import boolean_mask, sequence_mask
from opdock.ops.composed.ragged_tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from opdock.ops.fill import fill, ones, range, zeros
from opdock.ops.gather import gather
from opdock.ops.joining import concat, stack
from opdock.ops.padding import pad
from opdock.ops.ragged import to_sparse_op
from opdock.ops.ragged_padding import to_tensor_op
from opdock.ops.reduce import reduce_all, reduce_any, reduce_max, reduce_prod, reduce_sum
from opdock.ops.select import where
from opdock.ops.support.ragged_rows import lengths_to_splits
from opdock.shapes import as_tensor_shape, dimension_value

__all__: list[str] = []


# ---------------------------------------------------------------- dense
def from_tensor(
    tensor: Any,
    lengths: Any = None,
    padding: Any = None,
    ragged_rank: int = 1,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """A dense tensor as a ragged one; see `tf.RaggedTensor.to_tensor` for the way back.

    Args:
        tensor: a tensor of rank `ragged_rank` + 1 or more.
        lengths: the length of each row, or a list of lengths for several dimensions.
        padding: what rows end in that does not belong to them.
        ragged_rank: the number of ragged dimensions.
        name: a prefix for the names of the operations.
        row_splits_dtype: the type of the splits.

    Raises:
        ValueError: both `lengths` and `padding` are given, or the rank is too low.
        TypeError: `ragged_rank` is no integer.
    """
    dtype = dtypes.as_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise ValueError("Specify lengths or padding, but not both")
    if not isinstance(ragged_rank, int):
        raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
    if ragged_rank <= 0:
        raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
    with name_scope(name, "RaggedFromTensor"):
        tensor = convert_to_tensor(tensor, name="tensor")
        tensor.shape.with_rank_at_least(ragged_rank + 1)
        sizes = shape_of(tensor, out_type=dtype)
        if ragged_rank > 1:
            return _deep(tensor, sizes, lengths, padding, ragged_rank, dtype)
        if padding is not None:
            lengths = _unpadded(tensor, padding, sizes[1], dtype)
        if lengths is None:
            splits = range(sizes[0] + 1) * sizes[1]
            splits.set_shape([None if (n := dimension_value(tensor.shape[0])) is None else n + 1])
            values = reshape(tensor, concat([stack([sizes[0] * sizes[1]]), sizes[2:]], 0))
            return RaggedTensor.from_row_splits(values, splits, validate=False)  # type: ignore[no-any-return]
        if _is_nested(lengths):
            return _by_nested_lengths(tensor, lengths)
        lengths = convert_to_tensor(lengths, name="lengths", preferred_dtype=dtype)
        if not lengths.dtype.is_integer:
            raise TypeError(f"lengths must be an integer tensor; dtype={lengths.dtype}")
        lengths = cast(lengths, dtype)
        lengths.shape.assert_has_rank(1)
        zero = convert_to_tensor(0, dtype)
        lengths = maximum(minimum(lengths, sizes[1]), zero)
        values = boolean_mask(tensor, sequence_mask(lengths, maxlen=sizes[1]))
        return RaggedTensor.from_row_splits(values, lengths_to_splits(lengths), validate=False)  # type: ignore[no-any-return]


def _is_nested(lengths: Any) -> bool:
    """Whether there are lengths of several dimensions."""
    is_list = isinstance(lengths, (list, tuple)) and bool(lengths)
    return is_list and not isinstance(lengths[0], (int, float))


def _deep(
    tensor: Tensor, sizes: Tensor, lengths: Any, padding: Any, ragged_rank: int, dtype: Any
) -> RaggedTensor:
    """All dimensions but the last ragged one are uniform: their splits are multiples."""
    rows = concat([convert_to_tensor([-1], dtype), sizes[ragged_rank:]], 0)
    values = RaggedTensor.from_tensor(
        reshape(tensor, rows), lengths, padding, row_splits_dtype=dtype
    )
    levels = [
        range(reduce_prod(sizes[:axis]) + 1) * sizes[axis]
        for axis in builtins.range(1, ragged_rank)
    ]
    found: RaggedTensor = RaggedTensor.from_nested_row_splits(values, levels, validate=False)
    return found


def _unpadded(tensor: Tensor, padding: Any, columns: Tensor, dtype: Any) -> Tensor:
    """The length of each row without the padding that it ends in."""
    padding = convert_to_tensor(padding, tensor.dtype, "padding")
    padding.shape.assert_is_compatible_with(tensor.shape[2:])
    is_padding = equal(padding, tensor)
    rank = tensor.shape.ndims
    if rank is None or rank > 2:
        flat = concat([shape_of(is_padding)[:2], [-1]], 0)
        is_padding = reduce_all(reshape(is_padding, flat), axis=2)
    places = cast(logical_not(is_padding), dtype) * expand_dims(range(1, columns + 1), 0)
    return reduce_max(places, axis=1)


def _by_nested_lengths(tensor: Tensor, lengths: Any) -> RaggedTensor:
    tensor.shape.with_rank_at_least(len(lengths) + 1)
    there = ones(reshape(reduce_sum(lengths[-1]), [1]), dtypes.bool)
    mask = RaggedTensor.from_nested_row_lengths(there, lengths, validate=False)
    dense = _fitted(mask.to_tensor(default_value=False), tensor, len(lengths) + 1)
    values = boolean_mask(tensor, dense)
    found: RaggedTensor = RaggedTensor.from_nested_row_lengths(values, lengths, validate=False)
    return found


def _fitted(mask: Tensor, tensor: Tensor, rank: int) -> Tensor:
    """The mask with False up to the sizes of the tensor."""
    missing = shape_of(tensor)[:rank] - shape_of(mask)
    return pad(mask, stack([zeros([rank], dtypes.int32), missing], axis=1))


def to_tensor(value: Any, default_value: Any = None, name: str | None = None) -> Any:
    """A dense tensor whose rows are filled up to the longest.

    Args:
        value: a RaggedTensor; a dense tensor is given back as it is.
        default_value: what they are filled up with, zeros by default.
        name: a prefix for the names of the operations.
    """
    with name_scope(name, "RaggedToTensor"):
        value = convert_to_tensor_or_ragged_tensor(value, name="rt_input")
        if not isinstance(value, RaggedTensor):
            return value
        default = None
        if default_value is not None:
            default = convert_to_tensor(default_value, value.dtype, "default_value")
        values = value.values
        if isinstance(values, RaggedTensor):
            values = values.to_tensor(default)
        default = _default(default, values)
        splits = value.row_splits
        starts, limits = splits[:-1], splits[1:]
        rows = shape_of(starts, out_type=splits.dtype)[0]
        columns = maximum(reduce_max(limits - starts), convert_to_tensor(0, splits.dtype))
        # One element more than there are values: what stands where a row has ended.
        every = concat([values, expand_dims(default, 0)], 0)
        at = expand_dims(starts, 1) + expand_dims(range(columns), 0)
        nothing = shape_of(values, out_type=splits.dtype)[0]
        inside = at < expand_dims(limits, 1)
        return gather(every, where(inside, at, fill(stack([rows, columns]), nothing)))


def ragged_to_dense(rt_input: RaggedTensor, default_value: Any = None, shape: Any = None) -> Tensor:
    """A dense tensor of a given size; longer rows are cut, shorter ones filled up.

    Args:
        rt_input: a RaggedTensor.
        default_value: what they are filled up with, zeros by default.
        shape: the size, a tensor or a shape of the ragged tensor's rank, None for the longest row
            of a dimension; None for the longest rows of all.

    Raises:
        ValueError: the shape has another rank, or another size where nothing is ragged.
    """
    values, splits = rt_input.flat_values, rt_input.nested_row_splits
    if default_value is None:
        default_value = zeros((), dtype=values.dtype)
    if not isinstance(shape, Tensor):
        known = as_tensor_shape(shape).raw
        size = -1 if known is None else [-1 if d is None else d for d in known]
        shape = convert_to_tensor(size, splits[0].dtype)
    dense: Tensor = to_tensor_op(
        shape, values, default_value, list(splits), row_partition_types=["ROW_SPLITS"] * len(splits)
    )
    return dense


def _default(default: Tensor | None, values: Tensor) -> Tensor:
    """The default in the shape of one of the values."""
    element = shape_of(values)[1:]
    if default is None:
        default = zeros(element, dtype=values.dtype)
    else:
        rank = values.shape.ndims
        if rank is not None:
            default.shape.with_rank_at_most(rank - 1)
        if rank is None or default.shape.ndims != rank - 1:
            default = broadcast_to(default, element)
    default.shape.assert_is_compatible_with(values.shape[1:])
    default.set_shape(values.shape[1:])
    return default


# ---------------------------------------------------------------- sparse
def from_sparse(
    st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64
) -> RaggedTensor:
    """A sparse matrix whose rows have no gaps as a ragged tensor.

    Args:
        st_input: a SparseTensor of rank 2.
        name: a prefix for the names of the operations.
        row_splits_dtype: the type of the splits.

    Raises:
        TypeError: `st_input` is no SparseTensor.
        ValueError: its rank is not 2.
        tf.errors.InvalidArgumentError: at run time, when a row has a gap.
    """
    dtype = dtypes.as_dtype(row_splits_dtype)
    if not is_sparse(st_input):
        raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
    with name_scope(name, "RaggedFromSparse"):
        sparse = convert_to_tensor_or_sparse_tensor(st_input, name="st_input")
        ranks = (sparse.dense_shape.raw_shape, (sparse.indices.raw_shape or (None, None))[1:])
        if 2 not in [None if known is None else known[0] for known in ranks]:
            raise ValueError("rank(st_input) must be 2")
        with control_dependencies([_without_gaps(sparse.indices)]):
            rows = cast(sparse.indices[:, 0], dtype)
            count = cast(sparse.dense_shape[0], dtype)
            found: RaggedTensor = RaggedTensor.from_value_rowids(
                sparse.values, rows, count, validate=False
            )
            return found


def _without_gaps(indices: Tensor) -> Any:
    """An assertion that each row begins at zero and goes on by one."""
    rows, columns = indices[:, :-1], indices[:, -1]
    new_row = reduce_any(not_equal(rows[1:], rows[:-1]), axis=1)
    wanted = where(new_row, columns[1:] * 0, columns[:-1] + 1)
    holds = logical_and(reduce_all(equal(columns[:1], 0)), reduce_all(equal(columns[1:], wanted)))
    return Assert(holds, ["SparseTensor is not right-ragged", "SparseTensor.indices =", indices])


def to_sparse(value: RaggedTensor, name: str | None = None) -> SparseTensor:
    """A SparseTensor with a cell for each value.

    Args:
        value: a RaggedTensor.
        name: a prefix for the names of the operations.
    """
    with name_scope(name, "RaggedToSparse"):
        return SparseTensor(*to_sparse_op(list(value.nested_row_splits), value.flat_values))
