"""What ragged tensors share: lengths to splits and back, rows to segments, repeated ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import reshape
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal
from opdock.ops.fill import range
from opdock.ops.gather import gather
from opdock.ops.histogram import bincount
from opdock.ops.joining import concat
from opdock.ops.ragged import range_op
from opdock.ops.registry import get
from opdock.ops.scan import cumsum
from opdock.ops.tiling import repeat


def lengths_to_splits(lengths: Tensor) -> Tensor:
    """Where rows of given lengths begin and end."""
    return concat([convert_to_tensor([0], lengths.dtype), cumsum(lengths)], 0)


@extensible
def splits_to_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The row of each value: `[0, 0, 0, 2]` for the splits `[0, 3, 3, 4]`.

    Args:
        splits: an integer vector in ascending order, from 0 on.
        name: a prefix for the names of the operations.
        out_type: the type of the result, that of the splits by default.

    Raises:
        ValueError: the splits are no integers or no vector, or the type is none of integers.
    """
    with name_scope(name, "RaggedSplitsToSegmentIds", [splits]):
        if isinstance(splits, (list, tuple)) and not splits:
            raise ValueError("Invalid row_splits: []")
        splits = convert_to_tensor(splits, name="splits")
        if splits.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("splits must have dtype int32 or int64")
        splits.shape.assert_has_rank(1)
        known = splits.raw_shape
        if known is not None and known[0] == 0:
            raise ValueError("Invalid row_splits: a vector without elements")
        wanted = splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        # A value is in the last row that begins before or at it.
        values = range(splits[-1])
        after = get("UpperBound")([splits], [values], out_type=wanted)
        return reshape(after, [-1]) - 1


@extensible
def ids_to_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """The splits of rows whose values are in given segments: `[0, 3, 3, 4]` for `[0, 0, 0, 2]`.

    Args:
        segment_ids: an integer vector in ascending order.
        num_segments: the number of segments; the last one plus one by default.
        out_type: the type of the result, int64 by default, or that of the ids.
        name: a prefix for the names of the operations.

    Raises:
        TypeError: the ids are no integers.
        ValueError: they are no vector.
    """
    with name_scope(name, "SegmentIdsToRaggedSplits", [segment_ids]):
        if isinstance(segment_ids, (list, tuple)) and not segment_ids:
            segment_ids = np.zeros(0, np.int64)
        ids = convert_to_tensor(segment_ids, name="segment_ids", preferred_dtype=dtypes.int64)
        if ids.dtype not in (dtypes.int32, dtypes.int64):
            raise TypeError(f"segment_ids must be an integer tensor; dtype={ids.dtype}")
        ids.shape.assert_has_rank(1)
        wanted = ids.dtype if out_type is None else dtypes.as_dtype(out_type)
        count: Any = None
        if num_segments is not None:
            count = cast(convert_to_tensor(num_segments, name="num_segments"), dtypes.int32)
            count.shape.assert_has_rank(0)
        narrow = cast(ids, dtypes.int32)
        lengths = bincount(narrow, minlength=count, maxlength=count, dtype=wanted)
        splits = lengths_to_splits(lengths)
        known = None if count is None else constant_value(count)
        if known is not None:
            splits.set_shape([int(known) + 1])
        return splits


def positive_axis(axis: Any, rank: int | None) -> int:
    """The axis counted from the front.

    Raises:
        TypeError: it is no integer.
        ValueError: it is out of range, or negative where the rank is not known.
    """
    if not isinstance(axis, int):
        raise TypeError(f"axis must be an int; got {type(axis).__name__}")
    if rank is None:
        if axis < 0:
            raise ValueError("axis may only be negative if ndims is statically known.")
        return axis
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis + rank if axis < 0 else axis


def assert_splits_match(nested_splits: list[Any]) -> list[Any]:
    """Assertions that ragged tensors have the same rows; ValueError if they differ in rank."""
    message = "Inputs must have identical ragged splits"
    first = nested_splits[0]
    if any(len(splits) != len(first) for splits in nested_splits):
        raise ValueError(message)
    return [
        assert_equal(a, b, message=message)
        for splits in nested_splits[1:]
        for a, b in zip(first, splits, strict=True)
        if a is not b
    ]


def repeat_ranges(params: Tensor, splits: Tensor, repeats: Any) -> Tensor:
    """Each row of `params`, as the splits part it, so many times."""
    times = cast(convert_to_tensor(repeats), splits.dtype)
    if times.raw_shape == ():
        starts, limits = (repeat(bounds, times, axis=0) for bounds in (splits[:-1], splits[1:]))
    else:
        rows = splits_to_ids(lengths_to_splits(times))
        starts, limits = gather(splits[:-1], rows), gather(splits[1:], rows)
    one = convert_to_tensor(1, starts.dtype)
    return gather(params, range_op(starts, limits, one)[1])
