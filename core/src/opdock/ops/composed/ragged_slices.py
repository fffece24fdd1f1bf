"""Subscripts of ragged tensors: `rt[key]`."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import expand_dims
from opdock.ops.array import size as size_of
from opdock.ops.cast import cast
from opdock.ops.composed.ragged_math import range as ragged_range
from opdock.ops.composed.ragged_rows import gather
from opdock.ops.composed.ragged_shapes import expand_dims as ragged_expand_dims
from opdock.ops.composed.ragged_tensor import RaggedTensor
from opdock.ops.fill import zeros
from opdock.ops.joining import concat
from opdock.ops.select import where

__all__: list[str] = []

_EVERYTHING = slice(None)


def subscript(value: RaggedTensor, key: Any) -> Any:
    """The part of a ragged tensor that a key names.

    Args:
        value: a RaggedTensor.
        key: integers, slices, `tf.newaxis` and an ellipsis; integers only for dimensions that are
            not ragged. Slices of ragged dimensions are cut off at each row's own length.

    Raises:
        ValueError: an integer for a ragged dimension, or an ellipsis where the rank is not known.
        IndexError: more keys than dimensions, or no such row, if that is known by then.
        TypeError: a bound of a slice is no integer.
    """
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    with name_scope(None, "RaggedGetItem", [value.row_splits]):
        return _rows(value, keys)


def _rows(value: Any, keys: list[Any]) -> Any:
    if not keys:
        return value
    if isinstance(value, Tensor):
        return value[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is Ellipsis:
        return _rows(value, _spread(keys, value.shape.ndims))
    if first is None:
        return _with_axis(_rows(value, rest), 0)
    if isinstance(first, slice):
        return _columns(_sliced(value, first), rest)
    splits = value.row_splits
    # By this error Python ends a loop over the rows. How many a graph will have is seen as it runs.
    if value._has_value() and isinstance(first, Integral) and first >= splits.shape[0].value - 1:
        raise IndexError(f"Row key {first} out of bounds")
    row = value.values[splits[:-1][first] : splits[1:][first]]
    return _rows(row, rest)


def _with_axis(value: Any, axis: int) -> Any:
    if isinstance(value, RaggedTensor):
        return ragged_expand_dims(value, axis)
    return expand_dims(value, axis)


def _spread(keys: list[Any], dims: int | None) -> list[Any]:
    """Keys whose leading ellipsis is one slice shorter, or gone."""
    if dims is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    named = sum(1 for k in keys if k is not None) - 1
    if named > dims:
        raise IndexError("Too many indices for RaggedTensor")
    return keys[1:] if named == dims else [_EVERYTHING, *keys]


def _sliced(value: RaggedTensor, key: slice) -> RaggedTensor:
    """Some of the rows."""
    if key == _EVERYTHING:
        return value
    starts, limits = value.row_splits[:-1][key], value.row_splits[1:][key]
    if key.step is None or (isinstance(key.step, int) and key.step == 1):
        # Where no row is left, the splits are one zero.
        zero = zeros([1], value.row_splits.dtype)
        splits = concat([zero[size_of(starts) :], starts[:1], limits], 0)
        values = value.values[splits[0] : splits[-1]]
        return RaggedTensor.from_row_splits(values, splits - splits[0], validate=False)  # type: ignore[no-any-return]
    return _picked(value.values, starts, limits, 1)


def _columns(value: Any, keys: list[Any]) -> Any:
    """The keys of the dimensions after the first."""
    if not keys:
        return value
    if isinstance(value, Tensor):
        return value[(_EVERYTHING, *keys)]
    first, rest = keys[0], keys[1:]
    if first is Ellipsis:
        return _columns(value, _spread(keys, value.values.shape.ndims))
    if first is None:
        return _with_axis(_columns(value, rest), 1)
    if not isinstance(first, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    if first != _EVERYTHING:
        bounds = value.row_splits[:-1], value.row_splits[1:]
        starts, limits = bounds
        if first.start is not None and not _is_zero(first.start):
            starts = _moved(first.start, *bounds)
        if first.stop is not None:
            limits = _moved(first.stop, *bounds)
        value = _picked(value.values, starts, limits, first.step)
    return value.with_values(_columns(value.values, rest))


def _is_zero(bound: Any) -> bool:
    return isinstance(bound, int) and bound == 0


def _moved(offset: Any, starts: Tensor, limits: Tensor) -> Tensor:
    """A bound of a slice in each row, no further than the row."""
    if isinstance(offset, int):
        return minimum(starts + offset, limits) if offset >= 0 else maximum(limits + offset, starts)
    if not isinstance(offset, Tensor):
        raise TypeError("slice offsets must be integers or None")
    offset = cast(offset, starts.dtype)
    ahead, back = minimum(starts + offset, limits), maximum(limits + offset, starts)
    return where(offset >= 0, ahead, back) if offset.shape.ndims else _either(offset, ahead, back)


def _either(offset: Tensor, ahead: Tensor, back: Tensor) -> Tensor:
    forward = cast(offset >= 0, ahead.dtype)
    return ahead * forward + back * (1 - forward)  # type: ignore[no-any-return]


def _picked(values: Any, starts: Tensor, limits: Tensor, step: Any) -> RaggedTensor:
    """A row of every so many of the values from each start to each limit."""
    step = convert_to_tensor(1 if step is None else step, name="step")
    if not step.dtype.is_integer:
        raise TypeError("slice strides must be integers or None")
    at = ragged_range(starts, limits, cast(step, starts.dtype), row_splits_dtype=starts.dtype)
    return at.with_values(gather(values, at.values))
