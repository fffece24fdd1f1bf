"""Portable kernels that fold the rows of a segment, whatever their order.

The array API has no scatter that adds up. Rows are sorted by segment instead, and folded in
log2(n) rounds in which each takes in the fold that ends a power of two before it. A namespace that
does have such a scatter brings it as `fold_rows`, which gives None for what it cannot fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.dtypes import NUMBERS, REALS, DType, bfloat16, float16
from opdock.kernels.array_api import (
    device_ints,
    dims,
    dtype_of,
    fails,
    full,
    index_type,
    ints,
    invalid,
    is_sure,
)
from opdock.kernels.portable import portable
from opdock.kernels.portable.gather import takes_checked
from opdock.kernels.select.signature import NodeSig

Combine = Callable[[Any, Any], Any]
_COMBINE: Final = {"Sum": "add", "Prod": "multiply", "Max": "maximum", "Min": "minimum"}


def fold(xp: Any, combine: Combine, rows: Any, ids: Any, count: int) -> tuple[Any, Any | None]:
    """One row per segment, and whether the segment has any.

    Args:
        xp: the array namespace.
        combine: an associative function of two blocks of rows.
        rows: an array [n, m], n > 0.
        ids: an int64 array [n]; rows of negative ids are left out.
        count: the number of segments, above zero.

    Returns:
        An array [count, m], with any values where a segment has no row, and a truth value each; or
        None, of sums that are zero there.
    """
    own = getattr(xp, "fold_rows", None)
    folded: tuple[Any, Any | None] | None = None if own is None else own(combine, rows, ids, count)
    if folded is not None:
        return folded
    order = xp.argsort(ids, stable=True)
    ids, rows = xp.take(ids, order, axis=0), xp.take(rows, order, axis=0)
    step = 1
    while step < ids.shape[0]:
        same = ids[step:] == ids[:-step]
        if is_sure(xp, ~xp.any(same)):
            break
        merged = combine(rows[:-step, :], rows[step:, :])
        merged = xp.where(xp.expand_dims(same, axis=1), merged, rows[step:, :])
        rows = xp.concat([rows[:step, :], merged], axis=0)
        step *= 2
    wanted = device_ints(xp, np.arange(count), ids)
    place = xp.clip(xp.searchsorted(ids, wanted, side="right") - 1, 0, None)
    return xp.take(rows, place, axis=0), xp.take(ids, place, axis=0) == wanted


def fold_runs(xp: Any, combine: Combine, values: Any, starts: npt.NDArray[Any]) -> Any:
    """What comes of the values of each run, one after the other: an array of one value each.

    A namespace that has runs folded without a look at each value's own brings that as `fold_runs`.

    Args:
        xp: the array namespace.
        combine: an associative function of two arrays of values.
        values: an array [n], n > 0.
        starts: where each run begins, in host memory: ascending integers, the first of them 0.
    """
    own = getattr(xp, "fold_runs", None)
    if own is not None:
        return own(combine, values, starts)
    ids = np.repeat(np.arange(len(starts)), np.diff(starts, append=values.shape[0]))
    rows = xp.reshape(values, (-1, 1))
    return xp.reshape(fold(xp, combine, rows, device_ints(xp, ids, values), len(starts))[0], (-1,))


def sum_at(xp: Any, rows: Any, ids: Any, count: int) -> Any:
    """The sum of the rows [n, m] of each id: an array [count, m]."""
    if math.prod(rows.shape) == 0 or count == 0:
        return xp.zeros((count, rows.shape[1]), dtype=rows.dtype, device=_device(rows))
    total, present = fold(xp, xp.add, rows, ids, count)
    if present is None:
        return total
    return xp.where(xp.expand_dims(present, axis=1), total, xp.zeros_like(total))


def wide(xp: Any, x: Any, dtype: DType) -> Any:
    """16-bit floats as float32, in which they are summed; other types as they are."""
    return xp.astype(x, xp.float32) if dtype in (float16, bfloat16) else x


def _device(like: Any) -> Any:
    return getattr(like, "device", None)


@portable("UnsortedSegmentSum", "UnsortedSegmentProd", T=NUMBERS, host_inputs=("num_segments",))
@portable("UnsortedSegmentMax", "UnsortedSegmentMin", T=REALS, host_inputs=("num_segments",))
def unsorted_segment(xp: Any, sig: NodeSig) -> Any:
    """The fold of the rows of each segment id, in any order."""
    kind, dtype = sig.op.removeprefix("UnsortedSegment"), sig.in_dtypes[0].base_dtype
    combine = getattr(xp, _COMBINE[kind])
    element = dtype_of(xp, dtype)
    gap: Any = int(kind == "Prod")
    if kind in ("Max", "Min"):
        gap = dtype.min if kind == "Max" else dtype.max

    def run(data: Any, segment_ids: Any, num_segments: Any) -> Any:
        (count,), prefix = ints(num_segments), tuple(segment_ids.shape)
        check_segments(data, segment_ids, count)
        # Who adds rows up may look at their ids anyway.
        looked = kind == "Sum" and takes_checked(xp, data) and count and math.prod(data.shape)
        if not looked:
            _check_below(xp, segment_ids, count)
        rest = tuple(data.shape[len(prefix) :])
        rows = xp.reshape(data, (math.prod(prefix), math.prod(rest)))
        ids = xp.astype(xp.reshape(segment_ids, (-1,)), index_type(xp))
        if kind == "Sum":
            try:
                total = sum_at(xp, wide(xp, rows, dtype), ids, count)
            except (IndexError, RuntimeError):
                _check_below(xp, segment_ids, count)
                raise
            out = xp.astype(total, element, copy=False)
        else:
            out = full(xp, (count, math.prod(rest)), gap, dtype, data)
            if math.prod(prefix) and math.prod(out.shape):
                found, present = fold(xp, combine, wide(xp, rows, dtype), ids, count)
                out = xp.where(xp.expand_dims(present, axis=1), xp.astype(found, element), out)
        return xp.reshape(out, (count, *rest))

    return run


def _check_below(xp: Any, ids: Any, count: int) -> None:
    """Raises InvalidArgumentError unless all ids are below the number of segments."""
    prefix = tuple(ids.shape)
    if math.prod(prefix) and fails(xp, xp.max(ids) >= count):
        flat = xp.reshape(ids, (-1,))
        at = int(xp.argmax(xp.astype(flat >= count, xp.int32)))
        raise out_of_segments(at, int(flat[at]), prefix, count)


def unsorted_error(ids: Any, count: int | None = None) -> Exception:
    """The error of segment ids on the host that do not ascend from zero, or to below `count`.

    TF looks at the last id first, then run by run.
    """
    last = int(ids[-1]) + 1
    if count is not None and count < last:
        return invalid("segment ids must be < num_segments")
    count = last if count is None else count
    if count <= 0:
        return invalid("segment ids must be >= 0")
    starts = np.flatnonzero(ids[1:] != ids[:-1])
    for here, following in zip(ids[starts], ids[starts + 1], strict=True):
        if following < here:
            break
        if not 0 <= here < count:
            return invalid(
                f"Segment id {here} out of range [0, {count}), possibly because 'segment_ids' "
                "input is not sorted."
            )
    return invalid("segment ids are not increasing")


def check_segment_ids(data: Any, ids: Any) -> None:
    """Raises InvalidArgumentError unless there is an id for each row of the data."""
    if len(ids.shape) != 1:
        raise invalid("segment_ids should be a vector.")
    if not data.shape or ids.shape[0] != data.shape[0]:
        raise invalid("segment_ids should be the same size as dimension 0 of input.")


def check_picked_ids(indices: Any, ids: Any) -> None:
    """Raises InvalidArgumentError unless there is an id for each row that is picked."""
    if len(indices.shape) != 1:
        raise invalid("indices should be a vector.")
    if len(ids.shape) != 1:
        raise invalid("segment_ids should be a vector.")
    if indices.shape[0] != ids.shape[0]:
        raise invalid("segment_ids and indices should have same size.")


def no_picked_row(at: int, value: int, rows: int) -> Exception:
    """The error of the index at a position that picks no row of the data."""
    return invalid(f"Bad: indices[{at}] == {value} out of range [0, {rows})")


def no_segment(value: int, count: int, last: int, rows: int) -> Exception:
    """The error of a segment's id for which there is no gradient.

    Args:
        value: the first such id.
        count: how many gradients there are.
        last: the last id of all.
        rows: of the result.
    """
    if rows and last >= count:
        return invalid("Invalid number of segments")
    return invalid(f"Segment id {value} out of range [0, {count}).")


def no_row(value: int, rows: int) -> Exception:
    """The error of an index that is of no row of the result."""
    return invalid(f"Index {value} out of range [0, {rows}).")


def check_segments(data: Any, ids: Any, count: int) -> None:
    """Raises InvalidArgumentError unless `count` segments of ids in any order fit the data."""
    if count < 0:
        raise invalid(f"num_segments should be >= 0: {count}")
    if tuple(data.shape[: len(ids.shape)]) != tuple(ids.shape):
        raise invalid(
            f"data.shape = {dims(data.shape)} does not start with segment_ids.shape = "
            f"{dims(ids.shape)}"
        )


def out_of_segments(at: int, value: int, shape: tuple[int, ...], count: int) -> Exception:
    """The error of the id at a flat position among ids of `shape`, which is not below `count`."""
    place = dims(np.unravel_index(at, shape)) if shape else ""
    return invalid(f"segment_ids{place} = {value} is out of range [0, {count})")
