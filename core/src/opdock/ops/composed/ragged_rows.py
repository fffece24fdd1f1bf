"""Rows of ragged tensors: picked by index, joined, masked, chosen between and partitioned."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import expand_dims as dense_expand_dims
from opdock.ops.array import reshape
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_less
from opdock.ops.composed import masks
from opdock.ops.composed.ragged_dynamic_shape import RaggedTensorDynamicShape, broadcast_to
from opdock.ops.composed.ragged_shapes import expand_dims
from opdock.ops.composed.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
    match_row_splits_dtypes,
)
from opdock.ops.fill import range
from opdock.ops.gather import batch_gather as dense_batch_gather
from opdock.ops.gather import gather as dense_gather
from opdock.ops.gather import gather_nd as dense_gather_nd
from opdock.ops.joining import concat as dense_concat
from opdock.ops.joining import stack as dense_stack
from opdock.ops.matrix import transpose
from opdock.ops.ragged import gather_op
from opdock.ops.select import where as dense_where
from opdock.ops.sorting import argsort
from opdock.ops.support.ragged_rows import assert_splits_match, positive_axis
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.shapes import as_dimension, dimension_value

__all__: list[str] = []


# ---------------------------------------------------------------- picked by index
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Any:
    """`tf.gather` where the tensor or the indices are ragged: rows only."""
    if axis not in (None, 0) or not isinstance(axis or 0, int):
        raise ValueError("axis != 0 is not supported for ragged gather yet.")
    if not isinstance(batch_dims, int) or batch_dims != 0:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with name_scope(name, "RaggedGather"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        match_row_splits_dtypes(params, indices)
        if isinstance(indices, RaggedTensor):
            return indices.with_values(gather(params, indices.values))
        if not isinstance(params, RaggedTensor):
            return dense_gather(params, indices)
        if indices.shape.ndims is None:
            raise ValueError("indices.shape.ndims must be known statically")
        splits = list(params.nested_row_splits)
        found = gather_op(
            splits, params.flat_values, indices,
            OUTPUT_RAGGED_RANK=indices.shape.ndims + len(splits) - 1,
        )  # fmt: skip
        nested, values = found if isinstance(found, tuple) else ([], found)
        return RaggedTensor.from_nested_row_splits(values, list(nested), validate=False)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Any:
    """`tf.gather_nd` where the tensor or the indices are ragged."""
    if not isinstance(batch_dims, int) or batch_dims != 0:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with name_scope(name, "RaggedGatherNd"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        dtype = match_row_splits_dtypes(params, indices)
        rank = indices.shape.ndims
        if rank is None:
            raise ValueError("indices.rank be statically known.")
        if rank == 0:
            raise ValueError("indices.rank must be at least 1.")
        if isinstance(indices, RaggedTensor) and rank == indices.ragged_rank + 1:
            raise ValueError("The innermost dimension of indices may not be ragged")
        depth = dimension_value(indices.shape[-1])
        if depth is None:
            raise ValueError("indices.shape[-1] must be statically known.")
        if rank <= 2:
            return _cells(params, indices, depth)
        if isinstance(indices, RaggedTensor):
            return indices.with_flat_values(gather_nd(params, indices.flat_values))
        ragged = RaggedTensor.from_tensor(indices, ragged_rank=rank - 2, row_splits_dtype=dtype)
        found = ragged.with_flat_values(gather_nd(params, ragged.flat_values))
        # Dense indices of elements give a dense tensor.
        return found.to_tensor() if found.ragged_rank == rank - 2 else found


def _cells(params: Any, indices: Tensor, depth: int) -> Any:
    """What a vector or matrix of coordinates names, `depth` a cell."""
    if not isinstance(params, RaggedTensor):
        return dense_gather_nd(params, indices)
    single = indices.shape.ndims == 1
    if depth == 0:
        return _repeated(params, indices)
    if single:
        indices = dense_expand_dims(indices, 0)
    coordinates = cast(indices, params.row_splits.dtype)
    at, values = coordinates[:, 0], params
    for axis in builtins.range(1, depth):
        if not isinstance(values, RaggedTensor):
            rest = dense_concat([dense_expand_dims(at, 1), coordinates[:, axis:]], 1)
            found = dense_gather_nd(values, rest)
            return found[0] if single else found
        at = dense_gather(values.row_splits, at) + coordinates[:, axis]
        values = values.values
    found = gather(values, at)
    return found[0] if single else found


def _repeated(params: RaggedTensor, indices: Tensor) -> Any:
    """No coordinates name the whole tensor."""
    if indices.shape.ndims == 1:
        return params
    rows = dense_expand_dims(range(shape_of(indices)[0]) * 0, 1)
    return gather(expand_dims(params, 0), reshape(rows, [-1]))


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """`tf.batch_gather` where the tensor or the indices are ragged."""
    with name_scope(name, "RaggedBatchGather"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        dtype = match_row_splits_dtypes(params, indices)
        rank = indices.shape.ndims
        if rank is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        if rank == 0:
            raise ValueError("indices.rank must be at least 1.")
        if params.shape.ndims is not None and params.shape.ndims < rank:
            raise ValueError("batch shape from indices does not match params shape")
        for given, wanted in zip(params.shape, indices.shape[: rank - 1], strict=False):
            as_dimension(given).assert_is_compatible_with(wanted)
        if isinstance(indices, RaggedTensor):
            if isinstance(params, RaggedTensor) and rank > 2:
                check = _same_splits(params, indices)
                with control_dependencies([check]):
                    return indices.with_values(batch_gather(params.values, indices.values))
            if rank > 2:
                raise ValueError("batch shape from indices does not match params shape")
            if not isinstance(params, RaggedTensor):
                params = RaggedTensor.from_tensor(params, row_splits_dtype=dtype)
            with control_dependencies([_same_count(params.nrows(), indices.nrows())]):
                at = cast(indices.values, dtype)
                at = at + dense_gather(params.row_splits, indices.value_rowids())
                return indices.with_values(gather(params.values, at))
        if not isinstance(params, RaggedTensor):
            return dense_batch_gather(params, indices)
        if rank == 1:
            return gather(params, indices)
        if rank > 2:
            raise ValueError("batch shape from indices does not match params shape")
        with control_dependencies([_same_count(params.nrows(), shape_of(indices)[0])]):
            at = cast(indices, dtype) + dense_expand_dims(params.row_starts(), 1)
            return gather(params.values, at)


def batch_gather_with_default(
    params: Any, indices: Any, default_value: Any = "", name: str | None = None
) -> Any:
    """`batch_gather` where an index that points nowhere gives a default.

    Args:
        params: a tensor or RaggedTensor.
        indices: a tensor or RaggedTensor of as many batch dimensions; one dimension more.
        default_value: a scalar or vector of the type of `params`.
        name: a prefix for the names of the operations.

    Raises:
        ValueError: a rank is not known, or `default_value` is neither scalar nor vector.
    """
    with name_scope(name, "RaggedBatchGatherWithDefault"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        default = convert_to_tensor_or_ragged_tensor(default_value, name="default_value")
        dtype = match_row_splits_dtypes(params, indices, default)
        if default.shape.ndims not in (0, 1):
            raise ValueError('"default_value" must be a scalar or vector')
        if indices.shape.ndims is None:
            raise ValueError("Indices must have a known rank.")
        if params.shape.ndims is None:
            raise ValueError("Params must have a known rank.")
        axis = indices.shape.ndims - 1
        # The default stands before what is picked from, and is the item 0 that is picked instead.
        shape = RaggedTensorDynamicShape.from_tensor(params, dim_size_dtype=dtype)
        default = broadcast_to(cast(default, params.dtype), shape.with_single_items(axis))
        if is_ragged(params):
            lengths = expand_dims(params.row_lengths(axis), -1)
        else:
            lengths = shape_of(params, out_type=dtype)[axis]
        inside = (indices >= 0) & (indices < cast(lengths, indices.dtype))
        items = (indices + 1) * cast(inside, indices.dtype)
        return batch_gather(concat([default, params], axis), items)


def _same_splits(a: RaggedTensor, b: RaggedTensor) -> Any:
    message = "batch shape from indices does not match params shape"
    return assert_equal(a.row_splits, b.row_splits, message=message)


def _same_count(a: Tensor, b: Tensor) -> Any:
    message = "Dimension size mismatch"
    return assert_equal(cast(a, dtypes.int64), cast(b, dtypes.int64), message=message)


# ---------------------------------------------------------------- joined
def concat(values: Any, axis: Any, name: str | None = "concat") -> Any:
    """`tf.concat` of ragged tensors and dense ones."""
    with name_scope(name, "RaggedConcat"):
        return _joined(_operands(values), axis, stacked=False)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Stacks ragged tensors and dense ones along a new dimension.

    Args:
        values: a list of tensors of one rank and type.
        axis: where the dimension is; it may be ragged.
        name: a prefix for the names of the operations.

    Returns:
        A RaggedTensor, or a Tensor if all are dense and stacked along the last dimension.
    """
    with name_scope(name, "RaggedConcat"):
        return _joined(_operands(values), axis, stacked=True)


def _operands(values: Any) -> list[Any]:
    given = list(values) if isinstance(values, (list, tuple)) else [values]
    if not given:
        raise ValueError("rt_inputs may not be empty.")
    return [convert_to_tensor_or_ragged_tensor(v, name="rt_input") for v in given]


def _joined(parts: list[Any], axis: Any, stacked: bool) -> Any:
    dtype = match_row_splits_dtypes(*parts)
    if len(parts) == 1:
        return expand_dims(parts[0], axis) if stacked else parts[0]
    rank = next((p.shape.ndims for p in parts if p.shape.ndims is not None), None)
    for part in parts:
        part.shape.assert_has_rank(rank)
    total = None if rank is None else rank + int(stacked)
    at = positive_axis(axis, total)
    dense = not any(is_ragged(p) for p in parts)
    if dense and total is not None and at in (total - 1, (rank or 0) - 1):
        return dense_stack(parts, at) if stacked else dense_concat(parts, at)
    ragged = max([1, *(p.ragged_rank for p in parts if isinstance(p, RaggedTensor))])
    even = [_with_ragged_rank(p, ragged, dtype) for p in parts]
    if stacked:
        return _join_along([expand_dims(p, at) for p in even], at)
    return _join_along(even, at)


def _with_ragged_rank(value: Any, ragged_rank: int, dtype: Any) -> Any:
    """The value with uniform dimensions made ragged, so that there are so many."""
    if ragged_rank < 1:
        return value
    if not isinstance(value, RaggedTensor):
        if value.shape.ndims == 1:
            return value
        value = RaggedTensor.from_tensor(value, row_splits_dtype=dtype)
    if value.ragged_rank < ragged_rank:
        value = value.with_values(_with_ragged_rank(value.values, ragged_rank - 1, dtype))
    return value


def _join_along(parts: Sequence[Any], axis: int) -> Any:
    """Parts of one ragged rank, side by side along a dimension."""
    if not isinstance(parts[0], RaggedTensor):
        return dense_concat(list(parts), axis)
    if axis == 0:
        return _below_each_other(parts)
    if axis == 1:
        return _side_by_side(parts)
    checks = assert_splits_match([[p.row_splits] for p in parts])
    with control_dependencies(checks):
        inner = _join_along([p.values for p in parts], axis - 1)
        return RaggedTensor.from_row_splits(inner, parts[0].row_splits, validate=False)


def _below_each_other(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    flat = dense_concat([p.flat_values for p in parts], 0)
    nested = []
    for levels in zip(*(p.nested_row_splits for p in parts), strict=True):
        pieces, end = [levels[0]], levels[0][-1]
        for splits in levels[1:]:
            pieces.append(splits[1:] + end)
            end = end + splits[-1]
        nested.append(dense_concat(pieces, 0))
    found: RaggedTensor = RaggedTensor.from_nested_row_splits(flat, nested, validate=False)
    return found


def _side_by_side(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    """Row by row: the rows of all parts below each other, taken in turns."""
    n, rows = len(parts), parts[0].nrows()
    message = "Input tensors have incompatible shapes."
    checks = [assert_equal(p.nrows(), rows, message=message) for p in parts[1:]]
    with control_dependencies(checks):
        whole = _below_each_other(parts)
        turns = transpose(reshape(range(rows * n), dense_stack([n, -1])))
        taken = gather(whole, reshape(turns, [-1]))
        splits = taken.row_splits[::n]
        counts = [dimension_value(p.shape[0]) for p in parts]
        known = next((count for count in counts if count is not None), None)
        if known is not None:
            splits.set_shape([known + 1])
        return RaggedTensor.from_row_splits(taken.values, splits, validate=False)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- masked, chosen, partitioned
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """What a mask selects, in the rows where it was.

    Args:
        data: a tensor, ragged or not.
        mask: a bool tensor, ragged or not, whose shape is a prefix of that of `data`.
        name: a prefix for the names of the operations.

    Returns:
        A tensor with a ragged dimension for each of `mask` but the first.

    Raises:
        ValueError: the rank of the mask is not known, or zero.
    """
    with name_scope(name, "RaggedMask"):
        data = convert_to_tensor_or_ragged_tensor(data, name="data")
        mask = convert_to_tensor_or_ragged_tensor(mask, dtypes.bool, name="mask")
        dtype = match_row_splits_dtypes(data, mask)
        rank = mask.shape.ndims
        if rank is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if rank == 0:
            raise ValueError("mask cannot be scalar.")
        if data.shape.ndims is not None:
            data.shape[:rank].assert_is_compatible_with(mask.shape)
        if rank == 1:
            return _masked_rows(data, mask)
        if not isinstance(mask, RaggedTensor):
            mask = RaggedTensor.from_tensor(mask, ragged_rank=rank - 1, row_splits_dtype=dtype)
        mask = _with_ragged_rank(mask, rank - 1, dtype)
        data = _with_ragged_rank(data, rank - 1, dtype)
        nested = [mask.nested_row_splits, data.nested_row_splits[: mask.ragged_rank]]
        with control_dependencies(assert_splits_match(nested)):
            return _masked(data, mask, dtype)


def _masked_rows(data: Any, mask: Tensor) -> Any:
    if not isinstance(data, RaggedTensor):
        return masks.boolean_mask(data, mask)
    return gather(data, reshape(dense_where(mask), [-1]))


def _masked(data: Any, mask: Any, dtype: Any) -> Any:
    if mask.ragged_rank > 1:
        inner = _masked(data.values, mask.values, dtype)
        return RaggedTensor.from_row_splits(inner, mask.row_splits, validate=False)
    kept = cast(mask.values, dtype)
    lengths = unsorted_segment_sum(kept, mask.value_rowids(), mask.nrows())
    values = _masked_rows(data.values, mask.values)
    return RaggedTensor.from_row_lengths(values, lengths, validate=False)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`tf.where` of ragged tensors: elements, whole rows, or the coordinates of what is true."""
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    with name_scope(name, "RaggedWhere"):
        condition = convert_to_tensor_or_ragged_tensor(condition, name="condition")
        if x is None:
            return _coordinates(condition)
        x = convert_to_tensor_or_ragged_tensor(x, name="x")
        y = convert_to_tensor_or_ragged_tensor(y, name="y")
        if not any(isinstance(v, RaggedTensor) for v in (condition, x, y)):
            return dense_where(condition, x, y)
        dtype = match_row_splits_dtypes(condition, x, y)
        if all(isinstance(v, RaggedTensor) for v in (condition, x, y)):
            nested = [v.nested_row_splits for v in (condition, x, y)]
            with control_dependencies(assert_splits_match(nested)):
                chosen = dense_where(condition.flat_values, x.flat_values, y.flat_values)
                return condition.with_flat_values(chosen)
        if isinstance(condition, RaggedTensor):
            raise ValueError("Input shapes do not match.")
        # Whole rows of either: both below each other, and a row number for each.
        condition.shape.assert_has_rank(1)
        both = concat([x, y], 0)
        rows = [
            v.nrows() if isinstance(v, RaggedTensor) else shape_of(v, out_type=dtype)[0]
            for v in (x, y)
        ]
        return gather(both, dense_where(condition, range(rows[0]), rows[0] + range(rows[1])))


def _coordinates(condition: Any) -> Tensor:
    if not isinstance(condition, RaggedTensor):
        return dense_where(condition)
    inner = _coordinates(condition.values)
    condition = condition.with_row_splits_dtype(inner.dtype)
    rows = dense_gather(condition.value_rowids(), inner[:, 0])
    columns = inner[:, 0] - dense_gather(condition.row_splits, rows)
    lead = [dense_expand_dims(rows, 1), dense_expand_dims(columns, 1)]
    return dense_concat([*lead, inner[:, 1:]], 1)


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> Any:
    """The slices of a tensor by partition, one ragged row for each.

    Args:
        data: a tensor, ragged or not.
        partitions: an integer tensor whose shape is a prefix of that of `data`.
        num_partitions: the number of partitions.
        name: a prefix for the names of the operations.

    Raises:
        ValueError: the rank of `partitions` is not known.
        tf.errors.InvalidArgumentError: at run time, for a partition that is too large.
    """
    with name_scope(name, "SegmentStack"):
        data = convert_to_tensor_or_ragged_tensor(data, name="data")
        own = data.row_splits.dtype if isinstance(data, RaggedTensor) else None
        partitions = convert_to_tensor_or_ragged_tensor(
            partitions, name="partitions", preferred_dtype=own
        )
        if own is not None and not isinstance(partitions, RaggedTensor):
            partitions = cast(partitions, own)
        rank = partitions.shape.ndims
        if rank is None:
            raise ValueError("partitions must have known rank.")
        count = cast(convert_to_tensor(num_partitions, name="num_partitions"), partitions.dtype)
        count.shape.assert_has_rank(0)
        partitions.shape.assert_is_compatible_with(data.shape[:rank])
        if rank == 0:
            rows = stack([data]) if is_ragged(data) else dense_stack([data])
            return RaggedTensor.from_value_rowids(
                rows, dense_stack([partitions]), count, validate=False
            )
        if rank == 1:
            order = argsort(partitions, stable=True)
            ids = dense_gather(partitions, order)
            message = "partitions must be less than num_partitions"
            with control_dependencies([assert_less(ids[-1:], count, message=message)]):
                rows = gather(data, order)
                return RaggedTensor.from_value_rowids(rows, ids, count, validate=False)
        dtype = own or (partitions.row_splits.dtype if is_ragged(partitions) else dtypes.int64)
        data = _with_ragged_rank(data, 1, dtype)
        partitions = _with_ragged_rank(partitions, max(data.ragged_rank, 1), dtype)
        message = "data and partitions have incompatible ragged shapes"
        check = assert_equal(data.row_splits, partitions.row_splits, message=message)
        with control_dependencies([check]):
            return stack_dynamic_partitions(data.values, partitions.values, num_partitions)


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> list[Any]:
    """`tf.dynamic_partition` where data or partitions are ragged."""
    if not isinstance(num_partitions, int) or num_partitions < 0:
        raise TypeError("num_partitions must be a non-negative integer")
    rows = stack_dynamic_partitions(data, partitions, num_partitions, name)
    return [rows[i] for i in builtins.range(num_partitions)]
