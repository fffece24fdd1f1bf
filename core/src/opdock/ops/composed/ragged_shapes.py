"""Dimensions of ragged tensors: added, dropped, counted; slices; one-hot values."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims as dense_expand_dims
from opdock.ops.array import rank as dense_rank
from opdock.ops.array import size as dense_size
from opdock.ops.array import squeeze as dense_squeeze
from opdock.ops.check import Assert
from opdock.ops.compare import equal
from opdock.ops.composed.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
)
from opdock.ops.control import with_dependencies
from opdock.ops.fill import range
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_all
from opdock.ops.select import one_hot as dense_one_hot
from opdock.ops.support import array_util
from opdock.ops.support.ragged_rows import positive_axis
from opdock.shapes import dimension_value

__all__: list[str] = []


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """`tf.expand_dims` of a ragged tensor."""
    at = dim if axis is None else axis
    with name_scope(name, "RaggedExpandDims"):
        input = convert_to_tensor_or_ragged_tensor(input, name="input")
        if not isinstance(input, RaggedTensor):
            return dense_expand_dims(input, at)
        known = input.shape.ndims
        at = positive_axis(at, None if known is None else known + 1)
        if at == 0:
            zero = convert_to_tensor(0, input.row_splits.dtype)
            return RaggedTensor.from_row_splits(input, stack([zero, input.nrows()]), validate=False)
        if at == 1:
            splits = range(input.nrows() + 1)
            rows = dimension_value(input.shape[0])
            splits.set_shape([None if rows is None else rows + 1])
            return RaggedTensor.from_row_splits(input, splits, validate=False)
        return input.with_values(expand_dims(input.values, at - 1))


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """`tf.squeeze` of a ragged tensor; the dimensions must be named."""
    axis = array_util.renamed("axis", axis, "squeeze_dims", squeeze_dims)
    with name_scope(name, "RaggedSqueeze"):
        value = convert_to_tensor_or_ragged_tensor(input)
        if not isinstance(value, RaggedTensor):
            return dense_squeeze(value, axis)
        if axis is None:
            raise ValueError("Ragged.squeeze must have an axis argument.")
        given = [axis] if isinstance(axis, int) else axis
        if not isinstance(given, (list, tuple)) or not all(isinstance(d, int) for d in given):
            raise TypeError("Axis must be a list or tuple of integers.")
        gone = {positive_axis(d, value.shape.ndims) for d in given}
        checks, flat = [], value.flat_values
        levels = list(zip(value.nested_row_lengths(), value.nested_row_splits, strict=True))
        for i, (lengths, _) in enumerate(levels):
            if i + 1 in gone:
                checks.append(_squeezable(reduce_all(equal(lengths, 1)), i + 1))
        if 0 in gone:
            checks.append(_squeezable(equal(dense_size(value.row_splits), 2), 0))
        flat = with_dependencies(checks, flat) if checks else flat
        depth = value.ragged_rank
        inner = [d - depth for d in sorted(gone) if d > depth]
        if inner:
            flat = dense_squeeze(flat, inner)
        # Rows of one element are the elements: what is left of them is the splits that stay.
        kept = [splits for i, (_, splits) in enumerate(levels) if i + 1 not in gone]
        if 0 in gone:
            if not kept:
                return dense_squeeze(flat, [0], name)
            kept = kept[1:]
        return RaggedTensor.from_nested_row_splits(flat, kept, validate=False)


def _squeezable(holds: Tensor, axis: int) -> Any:
    return Assert(holds, [f"the given axis (axis = {axis}) is not squeezable!"])


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """`tf.size` of a ragged tensor: the number of its values."""
    value = convert_to_tensor_or_ragged_tensor(input)
    flat = value.flat_values if is_ragged(value) else value
    return dense_size(flat, name=name, out_type=out_type)


def rank(input: Any, name: str | None = None) -> Tensor:
    """`tf.rank` of a ragged tensor."""
    with name_scope(name, "RaggedRank"):
        value = convert_to_tensor_or_ragged_tensor(input)
        if not is_ragged(value):
            return dense_rank(value)
        return value.ragged_rank + dense_rank(value.flat_values)  # type: ignore[no-any-return]


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> RaggedTensor:
    """`tf.one_hot` of a ragged tensor."""
    with name_scope(name, "RaggedOneHot"):
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        if axis is not None:
            axis = positive_axis(axis, indices.shape.ndims)
            if axis < indices.ragged_rank:
                raise ValueError("axis may not be less than indices.ragged_rank.")
        flat = dense_one_hot(indices.flat_values, depth, on_value, off_value, axis, dtype)
        return indices.with_flat_values(flat)  # type: ignore[no-any-return]
