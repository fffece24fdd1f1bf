"""Ragged ranges, sums and other folds of ragged tensors, functions of their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops import reduce as dense
from opdock.ops.arithmetic import maximum
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal
from opdock.ops.composed.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
    match_row_splits_dtypes,
)
from opdock.ops.elementary import sqrt
from opdock.ops.fill import ones_like
from opdock.ops.gather import gather
from opdock.ops.ragged import range_op
from opdock.ops.strings import reduce_join as join_dense
from opdock.ops.strings import unsorted_segment_join
from opdock.ops.support.array_util import renamed
from opdock.ops.support.ragged_rows import (
    assert_splits_match,
    lengths_to_splits,
    positive_axis,
    splits_to_ids,
)
from opdock.ops.unsorted_segment import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)

__all__: list[str] = []

Segment = Callable[..., Any]
_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """A ragged tensor whose rows are ranges.

    Args:
        starts: where each begins, a scalar or a vector; the limits, if those are not given.
        limits: where each ends, a scalar or a vector.
        deltas: the steps, a scalar or a vector.
        dtype: the type of the values; the widest of the arguments by default.
        name: a prefix for the names of the operations.
        row_splits_dtype: the type of the splits.
    """
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange") as scope:
        given = [
            convert_to_tensor(value, dtype, what)
            for value, what in ((starts, "starts"), (limits, "limits"), (deltas, "deltas"))
        ]
        if dtype is None:
            widest = max((g.dtype for g in given), key=_RANGE_TYPES.index)
            given = [cast(g, widest) for g in given]
        splits, values = range_op(*given, Tsplits=dtypes.as_dtype(row_splits_dtype), name=scope)
        return RaggedTensor.from_row_splits(values, splits, validate=False)  # type: ignore[no-any-return]


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Applies a function to the flat values of ragged tensors.

    Args:
        op: the function; what it gives has as many rows as the flat values.
        *args: its arguments; ragged tensors among them, or in lists, have the same rows.
        **kwargs: its keyword arguments, likewise.

    Returns:
        A RaggedTensor with those rows; what `op` gives if nothing is ragged.

    Raises:
        ValueError: the ragged tensors differ in ragged rank, or `op` changed the number of values.
        tf.errors.InvalidArgumentError: at run time, when they have different rows.
    """
    found: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if is_ragged(value):
            ragged = convert_to_tensor_or_ragged_tensor(value)
            found.append(ragged)
            return ragged.flat_values
        if isinstance(value, (list, tuple)) and any(is_ragged(v) for v in value):
            return [flat(v) for v in value]
        return value

    inner = [flat(a) for a in args]
    named = {key: flat(v) for key, v in kwargs.items()}
    if not found:
        return op(*inner, **named)
    match_row_splits_dtypes(*found)
    nested = [value.nested_row_splits for value in found]
    with control_dependencies(assert_splits_match(nested)):
        return found[0].with_flat_values(op(*inner, **named))


# ---------------------------------------------------------------- segments
def segment(op: Segment, data: Any, segment_ids: Any, num_segments: Any, name: str | None) -> Any:
    """A fold of the rows of ragged data by segment: `tf.unsorted_segment_sum` and its kin.

    A row of the result is as long as the longest of its segment.
    """
    if not is_ragged(data) and not is_ragged(segment_ids):
        return op(data, segment_ids, num_segments, name=name)
    with name_scope(name, "RaggedSegment"):
        data = convert_to_tensor_or_ragged_tensor(data, name="data")
        ids = convert_to_tensor_or_ragged_tensor(segment_ids, name="segment_ids")
        match_row_splits_dtypes(data, ids)
        if ids.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("segment_ids must have dtype int32 or int64.")
        if isinstance(ids, RaggedTensor):
            message = "segment_ids.shape must be a prefix of data.shape"
            if not isinstance(data, RaggedTensor):
                raise ValueError(f"{message}, but segment_ids is ragged and data is not.")
            check = assert_equal(ids.row_splits, data.row_splits, message=message)
            with control_dependencies([check]):
                return segment(op, data.values, ids.values, num_segments, None)
        splits = data.row_splits
        lengths = splits[1:] - splits[:-1]
        longest = unsorted_segment_max(lengths, ids, num_segments)
        whole = lengths_to_splits(maximum(longest, convert_to_tensor(0, longest.dtype)))
        # Each value goes to its own place in the row of its segment.
        starts = gather(whole, ids)
        place = range_op(
            starts, starts + lengths, convert_to_tensor(1, starts.dtype), Tsplits=starts.dtype
        )[1]
        values = segment(op, data.values, place, whole[-1], None)
        return RaggedTensor.from_row_splits(values, whole, validate=False)


def segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Sums of ragged rows by segment."""
    return segment(unsorted_segment_sum, data, segment_ids, num_segments, name)


def segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Products of ragged rows by segment."""
    return segment(unsorted_segment_prod, data, segment_ids, num_segments, name)


def segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Minima of ragged rows by segment."""
    return segment(unsorted_segment_min, data, segment_ids, num_segments, name)


def segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Maxima of ragged rows by segment."""
    return segment(unsorted_segment_max, data, segment_ids, num_segments, name)


def _over_counts(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None, root: bool
) -> Any:
    with name_scope(name, "RaggedSegmentSqrtN" if root else "RaggedSegmentMean"):
        data = convert_to_tensor_or_ragged_tensor(data)
        total = segment_sum(data, segment_ids, num_segments)
        each = map_flat_values(ones_like, data)
        count = segment_sum(each, segment_ids, num_segments)
        return map_flat_values(lambda t, n: t / (sqrt(n) if root else n), total, count)


def segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Means of ragged rows by segment."""
    return _over_counts(data, segment_ids, num_segments, name, root=False)


def segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Sums of ragged rows by segment, over the root of how many there are."""
    return _over_counts(data, segment_ids, num_segments, name, root=True)


# ---------------------------------------------------------------- reductions
def _axes(axis: Any, rank: int | None) -> list[int] | None:
    """The axes from the last to the first, or None for all."""
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        if known is None:
            raise ValueError("axis must be known at graph construction time.")
        axis = np.asarray(known).tolist()
    if axis is None:
        return None
    given = list(axis) if isinstance(axis, (list, tuple, np.ndarray)) else [axis]
    whole = [int(a) if isinstance(a, np.integer) else a for a in given]
    return sorted({positive_axis(a, rank) for a in whole}, reverse=True)


def _fold(value: Any, axis: int, whole: Callable[..., Any], by_segment: Segment) -> Any:
    """A fold along one dimension."""
    if not isinstance(value, RaggedTensor):
        return whole(value, axis)
    if axis > 1:
        return value.with_values(_fold(value.values, axis - 1, whole, by_segment))
    splits = value.row_splits
    if axis == 1:
        return segment(by_segment, value.values, splits_to_ids(splits), value.nrows(), None)
    lengths = splits[1:] - splits[:-1]
    zero = convert_to_tensor(0, splits.dtype)
    place = range_op(zero, lengths, convert_to_tensor(1, splits.dtype), Tsplits=splits.dtype)[1]
    count = maximum(dense.reduce_max(lengths), zero)
    return segment(by_segment, value.values, place, count, None)


def _reduce(
    value: Any, axis: Any, keepdims: Any, whole: Callable[..., Any], by_segment: Segment
) -> Any:
    value = convert_to_tensor_or_ragged_tensor(value, name="input_tensor")
    if keepdims:
        raise ValueError("keepdims=True is not supported for RaggedTensors.")
    axes = _axes(axis, value.shape.ndims)
    if axes is None:
        return whole(value.flat_values)
    for one in axes:
        value = _fold(value, one, whole, by_segment)
    return value


Reduction = Callable[..., Any]


def _reduction(name: str, fold: Callable[[Any, Any, Any], Any]) -> Reduction:
    """`tf.reduce_...` of a ragged tensor, with the arguments that it has."""

    def reduced(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Any:
        axis = renamed("axis", axis, "reduction_indices", reduction_indices)
        keepdims = renamed("keepdims", keepdims, "keep_dims", keep_dims)
        with name_scope(name, "RaggedReduce"):
            return fold(input_tensor, axis, keepdims)

    reduced.__name__ = name
    return reduced


def _mean(value: Any, axis: Any, keepdims: Any) -> Any:
    value = convert_to_tensor_or_ragged_tensor(value)
    total = reduce_sum(value, axis, keepdims)
    count = reduce_sum(map_flat_values(ones_like, value), axis, keepdims)
    return map_flat_values(lambda t, n: t / n, total, count)


def _logical(fold: Reduction) -> Callable[[Any, Any, Any], Any]:
    def reduced(value: Any, axis: Any, keepdims: Any) -> Any:
        found = fold(map_flat_values(cast, value, dtypes.int32), axis, keepdims)
        return map_flat_values(cast, found, dtypes.bool)

    return reduced


def _numeric(name: str, whole: Callable[..., Any], by_segment: Segment) -> Reduction:
    return _reduction(name, lambda v, axis, keep: _reduce(v, axis, keep, whole, by_segment))


reduce_sum = _numeric("reduce_sum", dense.reduce_sum, unsorted_segment_sum)
reduce_prod = _numeric("reduce_prod", dense.reduce_prod, unsorted_segment_prod)
reduce_min = _numeric("reduce_min", dense.reduce_min, unsorted_segment_min)
reduce_max = _numeric("reduce_max", dense.reduce_max, unsorted_segment_max)
reduce_mean = _reduction("reduce_mean", _mean)
reduce_all = _reduction("reduce_all", _logical(reduce_prod))
reduce_any = _reduction("reduce_any", _logical(reduce_sum))


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: Any = None, separator: str = "",
    name: str | None = None,
) -> Any:  # fmt: skip
    """Joins the strings of a ragged tensor along some dimensions.

    Args:
        inputs: a tensor of strings, ragged or not.
        axis: the dimensions; all by default.
        keepdims: must not be true for a ragged tensor.
        separator: what to put between two strings.
        name: a name for the operation.

    Raises:
        ValueError: `keepdims` is true, or a dimension is out of range or not known.
    """
    value = convert_to_tensor_or_ragged_tensor(inputs, name="rt_input")
    if not isinstance(value, RaggedTensor):
        return join_dense(value, axis, keepdims=keepdims, separator=separator, name=name)
    with name_scope(name, "RaggedSegmentJoin"):
        whole = partial(join_dense, separator=separator)
        return _reduce(
            value, axis, keepdims, whole, partial(unsorted_segment_join, separator=separator)
        )
