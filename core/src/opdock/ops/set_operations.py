"""Rows as sets: size, union, intersection and difference along the last dimension."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import (
    SparseTensor,
    SparseTensorValue,
    internal_convert_to_tensor_or_indexed_slices,
)
from opdock.graph.nodes.dispatch import extensible
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape

# Public as tf.sets.
__all__: list[str] = []

_T = "T: {int8, int16, int32, int64, uint8, uint16, string}"
_ATTRS = "set_operation: string, validate_indices: bool = true, " + _T
_RESULT = " -> result_indices: int64, result_values: T, result_shape: int64"
_TYPES = frozenset(
    (
        dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16,
        dtypes.string,
    )
)  # fmt: skip

set_size_op = define_op(
    "SetSize", "set_indices: int64, set_values: T, set_shape: int64 -> size: int32",
    "validate_indices: bool = true, " + _T,
).not_differentiable()  # fmt: skip
dense_op = define_op(
    "DenseToDenseSetOperation", "set1: T, set2: T" + _RESULT, _ATTRS
).not_differentiable()
dense_to_sparse_op = define_op(
    "DenseToSparseSetOperation",
    "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64" + _RESULT, _ATTRS,
).not_differentiable()  # fmt: skip
sparse_op = define_op(
    "SparseToSparseSetOperation",
    "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, "
    "set2_values: T, set2_shape: int64" + _RESULT, _ATTRS,
).not_differentiable()  # fmt: skip
set_size_op.shape(common_shapes.unknown)


# ---------------------------------------------------------------- shapes
def _results(rank: int | None) -> list[Shape]:
    return [(None, rank), (None,), (rank,)]


def _sparse_rank(indices: Shape, values: Shape, dense_shape: Shape) -> int | None:
    """The rank of a sparse tensor, once its parts fit each other."""
    rows = shapes.with_rank(indices, 2)
    shapes.merge_dim(rows[0], array_util.vector_length(values))
    return shapes.merge_dim(rows[1], array_util.vector_length(dense_shape))


@dense_op.shape
def _dense_shape(sig: ShapeSig) -> list[Shape]:
    first, second = sig.shapes
    if first is None:
        second = shapes.with_rank_at_least(second, 2)
        return _results(None if second is None else len(second))
    shapes.with_rank_at_least(first, 2)
    second = shapes.with_rank(second, len(first))
    shapes.merge(first[:-1], second[:-1])
    return _results(len(first))


@dense_to_sparse_op.shape
def _dense_to_sparse_shape(sig: ShapeSig) -> list[Shape]:
    first = shapes.with_rank_at_least(sig.shapes[0], 2)
    rank = _sparse_rank(*sig.shapes[1:])
    return _results(rank if first is None else array_util.with_dim(rank, len(first)))


@sparse_op.shape
def _sparse_shape(sig: ShapeSig) -> list[Shape]:
    ranks = [_sparse_rank(*sig.shapes[:3]), _sparse_rank(*sig.shapes[3:])]
    for i, rank in enumerate(ranks):
        if rank is not None and rank < 2:
            raise ValueError(f"Input {i}, expected rank >= 2, got {rank}.")
    return _results(shapes.merge_dim(*ranks))


# ---------------------------------------------------------------- public functions
def _given(value: Any, name: str) -> Any:
    """A tensor or a SparseTensor of what may be either."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return internal_convert_to_tensor_or_indexed_slices(value, name=name)


def _pair(a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Both sets, the dense one first, and whether they have changed places."""
    a = _given(a, "a")
    if a.dtype.base_dtype not in _TYPES:
        raise TypeError(f"'a' invalid dtype {a.dtype}.")
    b = _given(b, "b")
    if b.dtype.base_dtype != a.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype} vs {b.dtype}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        return b, a, True
    return a, b, False


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, SparseTensor):
        return value.indices, value.values, value.dense_shape
    return (value,)


def _operation(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    op: OpSpec
    if isinstance(a, SparseTensor):
        op = sparse_op
    else:
        op = dense_to_sparse_op if isinstance(b, SparseTensor) else dense_op
    return SparseTensor(
        *op(*_parts(a), *_parts(b), set_operation=operation, validate_indices=validate_indices)
    )


@extensible
def set_size(a: Any, validate_indices: bool = True) -> Any:
    """The number of different values in each row of a sparse tensor.

    Args:
        a: a SparseTensor of rank 2 or more with sorted indices; integers or strings.
        validate_indices: kept for TF's sake: indices are always checked.

    Returns:
        An int32 tensor of the shape of `a` without its last dimension.

    Raises:
        TypeError: `a` is not sparse, or has another type.
    """
    a = _given(a, "a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    if a.values.dtype.base_dtype not in _TYPES:
        raise TypeError(f"Invalid dtype {a.values.dtype}.")
    return set_size_op(*_parts(a), validate_indices=validate_indices)


@extensible
def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The values that a row of `a` and the same row of `b` share.

    Args:
        a: a tensor or SparseTensor of rank 2 or more; integers or strings.
        b: the same, equal in shape but for the last dimension; sparse if `a` is sparse.
        validate_indices: kept for TF's sake: indices are always checked.

    Returns:
        A SparseTensor of the rank of `a`, whose rows hold the values in ascending order.

    Raises:
        TypeError: the types are not allowed or differ.
    """
    a, b, _ = _pair(a, b)
    return _operation(a, b, "intersection", validate_indices)


@extensible
def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The values of a row of `a` that the same row of `b` lacks.

    Args:
        a: a tensor or SparseTensor of rank 2 or more; integers or strings.
        b: the same, equal in shape but for the last dimension.
        aminusb: whether to subtract `b` from `a`, else `a` from `b`.
        validate_indices: kept for TF's sake: indices are always checked.

    Returns:
        A SparseTensor of the rank of `a`, whose rows hold the values in ascending order.

    Raises:
        TypeError: the types are not allowed or differ.
    """
    a, b, flipped = _pair(a, b)
    return _operation(a, b, "a-b" if aminusb != flipped else "b-a", validate_indices)


@extensible
def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The values that a row of `a` or the same row of `b` has.

    Args:
        a: a tensor or SparseTensor of rank 2 or more; integers or strings.
        b: the same, equal in shape but for the last dimension.
        validate_indices: kept for TF's sake: indices are always checked.

    Returns:
        A SparseTensor of the rank of `a`, whose rows hold the values in ascending order.

    Raises:
        TypeError: the types are not allowed or differ.
    """
    a, b, _ = _pair(a, b)
    return _operation(a, b, "union", validate_indices)
