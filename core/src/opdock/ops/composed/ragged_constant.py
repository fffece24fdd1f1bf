"""`tf.ragged.constant` and what else makes ragged tensors of nothing but Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant import constant as dense_constant
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.ragged_tensor import RaggedTensor, is_ragged
from opdock.ops.composed.ragged_value import RaggedTensorValue
from opdock.ops.identity import placeholder as dense_placeholder
from opdock.shapes import TensorShape

__all__: list[str] = []


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A constant ragged tensor of nested lists.

    Args:
        pylist: nested lists, tuples or arrays; all scalars are nested equally deep.
        dtype: the type of the values; found from the values by default.
        ragged_rank: the number of ragged dimensions; all but the innermost one, without those of
            `inner_shape`, by default.
        inner_shape: the shape of what stands in the innermost ragged dimension.
        name: a prefix for the names of the operations.
        row_splits_dtype: the type of the splits.

    Returns:
        A RaggedTensor; a Tensor if there is no ragged dimension.

    Raises:
        ValueError: the scalars are nested differently, or not as the arguments say.
        TypeError: `pylist` is a ragged tensor.
    """
    with name_scope(name, "RaggedConstant"):
        parts = _parts(pylist, ragged_rank, inner_shape)
        found = dense_constant(
            parts.values, dtype, parts.shape, name="values" if parts.splits else "Const"
        )
        for splits in reversed(parts.splits):
            rows = dense_constant(splits, dtype=dtypes.as_dtype(row_splits_dtype))
            found = RaggedTensor.from_row_splits(found, rows, validate=False)
        return found


def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """Like `tf.ragged.constant`, but the value: a RaggedTensorValue or an array.

    Args:
        pylist: nested lists, tuples or arrays; all scalars are nested equally deep.
        dtype: the type of the values, of NumPy or of TensorFlow.
        ragged_rank: the number of ragged dimensions.
        inner_shape: the shape of what stands in the innermost ragged dimension.
        row_splits_dtype: the type of the splits.

    Raises:
        ValueError: the scalars are nested differently, or not as the arguments say.
        TypeError: `pylist` is a ragged tensor.
    """
    parts = _parts(pylist, ragged_rank, inner_shape)
    kind = dtype.as_numpy_dtype if isinstance(dtype, dtypes.DType) else dtype
    found: Any = np.array(parts.values, kind)
    if parts.shape is not None:
        found = found.reshape(parts.shape)
    for splits in reversed(parts.splits):
        rows = np.array(splits, dtypes.as_dtype(row_splits_dtype).as_numpy_dtype)
        found = RaggedTensorValue(found, rows)
    return found


def placeholder(
    dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """A ragged tensor that must be fed.

    Args:
        dtype: the type of the values.
        ragged_rank: the number of ragged dimensions.
        value_shape: the shape of what stands in the innermost one.
        name: a prefix for the names of the operations.
    """
    if ragged_rank == 0:
        return dense_placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder"):
        flat = TensorShape([None]).concatenate(value_shape)
        found: Any = dense_placeholder(dtype, flat, "flat_values")
        for level in reversed(range(ragged_rank)):
            splits = dense_placeholder(dtypes.int64, [None], f"row_splits_{level}")
            found = RaggedTensor(found, splits, internal=True)
        return found


# ---------------------------------------------------------------- nested lists
class _Parts(NamedTuple):
    """Nested lists taken apart.

    Attributes:
        values: what stands in the innermost ragged dimension, one after the other.
        shape: its shape; None if its lists say.
        splits: the splits of each ragged dimension.
    """

    values: Any
    shape: tuple[int, ...] | None
    splits: list[list[int]]


def _is_nested(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or np.ndim(value) != 0


def _parts(pylist: Any, ragged_rank: int | None, inner_shape: Any) -> _Parts:
    if is_ragged(pylist):
        raise TypeError("pylist may not be a RaggedTensor or RaggedTensorValue.")
    inner = None if inner_shape is None else tuple(int(n) for n in inner_shape)
    if not _is_nested(pylist):
        _check_scalar(pylist, ragged_rank, inner)
        return _Parts(pylist, (), [])
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    scalars, deepest = _depths(pylist)
    if scalars is not None and deepest > scalars:
        raise ValueError(
            f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting"
        )
    if inner is not None and ragged_rank is not None:
        wanted = ragged_rank + len(inner) + 1
        if (scalars is not None and wanted != scalars) or (scalars is None and wanted < deepest):
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
                f"dim(inner_shape)={len(inner)}"
            )
    uniform = max(deepest - (0 if inner is None else len(inner)), 1) < 2
    if ragged_rank == 0 or (ragged_rank is None and uniform):
        return _Parts(pylist, inner, [])
    if inner is None:
        inner = () if ragged_rank is None else _inner_shape(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, deepest - 1 if scalars is None else scalars - 1 - len(inner))
    splits, values = [], pylist
    for _ in range(ragged_rank):
        lengths = [len(row) for row in values]
        splits.append([0, *np.cumsum(lengths, dtype=np.int64).tolist()])
        values = [item for row in values for item in row]
    return _Parts(values, (len(values), *inner), splits)


def _check_scalar(value: Any, ragged_rank: int | None, inner: tuple[int, ...] | None) -> None:
    if ragged_rank:
        raise ValueError(f"Invalid pylist={value!r}: incompatible with ragged_rank={ragged_rank}")
    if inner:
        raise ValueError(
            f"Invalid pylist={value!r}: incompatible with dim(inner_shape)={len(inner)}"
        )


def _depths(value: Any) -> tuple[int | None, int]:
    """(how deep scalars are nested, or None without any; how deep lists are)."""
    if not _is_nested(value):
        return 0, 0
    scalars: int | None = None
    deepest = 1
    for child in value:
        own, lists = _depths(child)
        if own is not None:
            if scalars is not None and scalars != own + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalars = own + 1
        deepest = max(deepest, lists + 1)
    return scalars, deepest


def _inner_shape(pylist: Any, ragged_rank: int) -> tuple[int, ...]:
    """The shape of what stands in the ragged dimensions; ValueError unless all have one."""
    values: list[Any] = list(pylist)
    for depth in range(ragged_rank):
        if not all(map(_is_nested, values)):
            raise ValueError(
                f"pylist has scalar values depth {depth + 1}, but ragged_rank={ragged_rank} "
                f"requires scalar value depth greater than {ragged_rank}"
            )
        values = [item for row in values for item in row]
    first: Any = values[0] if values else None
    shape: list[int] = []
    while values and _is_nested(first):
        shape.append(len(first))
        first = first[0] if len(first) else None
        if first is None:
            break
    for item in values:
        _check_shape(item, shape)
    return tuple(shape)


def _check_shape(item: Any, shape: Sequence[int]) -> None:
    if _is_nested(item) != bool(shape) or (shape and len(item) != shape[0]):
        raise ValueError("inner values have inconsistent shape")
    for child in item if shape else ():
        _check_shape(child, shape[1:])
