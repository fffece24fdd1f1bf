"""Portable kernels of ragged tensors by their splits.

Splits say how many elements there are, so they are read and counted on the host; the elements stay
on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from opdock.kernels.array_api import copy, device_ints, dims, dtype_of, home, invalid, taken
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def spans(starts: Array, lengths: Array) -> Array:
    """The numbers from each start on, so many each, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def check_splits(nested: Sequence[Array], values: Any) -> None:
    """Raises InvalidArgumentError unless each level of splits covers the next one."""
    for level, splits in enumerate(nested):
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else values.shape[0]
        if splits.ndim != 1 or not len(splits):
            raise invalid("Ragged splits must be vectors with at least one element")
        if splits[0] < 0 or (np.diff(splits) < 0).any():
            raise invalid("Ragged splits must be sorted in ascending order")
        if splits[-1] > below:
            raise invalid(
                f"Ragged splits must not point past values: {int(splits[-1])} vs. {below}"
            )


# ---------------------------------------------------------------- gather
@portable(
    "RaggedGather",
    host_inputs=("params_nested_splits", "indices"), host_outputs=("output_nested_splits",),
)  # fmt: skip
def ragged_gather(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Rows by index; each level of splits is counted anew."""
    depth = int(sig.attrs["PARAMS_RAGGED_RANK"])

    def run(*inputs: Any) -> Any:
        nested, values, indices = inputs[:depth], inputs[depth], np.asarray(inputs[depth + 1])
        if not len(values.shape):
            raise invalid("params.rank must be nonzero")
        check_splits(nested, values)
        rows = indices.reshape(-1)
        count, kind = len(nested[0]) - 1, nested[0].dtype
        bad = (rows < 0) | (rows >= count)
        if bad.any():
            first = int(np.argmax(bad))
            place = dims(np.unravel_index(first, indices.shape)) if indices.ndim else ""
            raise invalid(f"indices{place} = {rows[first]} is not in [0, {count})")
        found: list[Array] = []
        # Dense dimensions of the indices become ragged ones whose rows have one length.
        for axis in range(indices.ndim - 1):
            length = indices.shape[axis + 1]
            lead = int(np.prod(indices.shape[: axis + 1]))
            found.append((np.arange(lead + 1) * length).astype(kind))
        for splits in nested:
            starts = splits[rows].astype(np.int64)
            lengths = splits[rows + 1].astype(np.int64) - starts
            found.append(np.concatenate([[0], np.cumsum(lengths)]).astype(kind))
            rows = spans(starts, lengths)
        if not indices.ndim:
            found = found[1:]  # one row is what stands in it
        out = taken(xp, values, rows)
        return (*found, out) if found else out

    return run


# ---------------------------------------------------------------- ranges
@portable(
    "RaggedRange",
    host_inputs=("starts", "limits", "deltas"), host_outputs=("rt_nested_splits",),
)  # fmt: skip
def ragged_range(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any]]:
    """Ranges of different lengths, one after the other.

    Whole numbers are counted on the device. Others are sums of as many steps, each rounded, which
    nobody makes faster than one after the other.
    """
    kind, element = sig.out_dtypes[0].np, sig.out_dtypes[1].base_dtype
    lengths_of = _whole_lengths if element.is_integer else _real_lengths

    def run(*inputs: Any) -> tuple[Array, Any]:
        start, limit, step = _rows(*(np.asarray(given) for given in inputs))
        lengths = lengths_of(start, limit, step)
        longest = int(lengths.max(initial=0))
        if longest * len(lengths) >= _MOST / 2 and lengths.sum(dtype=np.float64) >= _MOST / 2:
            raise invalid("Requires ((limit - start) / delta) to fit into memory")
        splits = np.zeros(len(lengths) + 1, kind)
        splits[1:] = ends = np.cumsum(lengths)
        if not element.is_integer:
            return splits, xp.asarray(
                _summed(start, step, lengths, ends, longest), device=home(sig)
            )

        def on_device(array: Array) -> Any:
            return xp.asarray(array, dtype=dtype_of(xp, element), device=home(sig))

        # The first element of each row, and its step, as often as the row is long.
        row = np.repeat(np.arange(len(lengths)), lengths)
        of = device_ints(xp, row, on_device(step))
        place = xp.arange(len(row), dtype=dtype_of(xp, element), device=getattr(of, "device", None))
        place = place - xp.take(on_device(splits[:-1]), of, axis=0)
        first, steps = (xp.take(on_device(v), of, axis=0) for v in (start, step))
        return splits, first + place * steps

    return run


def _rows(starts: Array, limits: Array, deltas: Array) -> list[Array]:
    """Starts, limits and steps of each row."""
    given = {"starts": starts, "limits": limits, "deltas": deltas}
    for name, value in given.items():
        if value.ndim > 1:
            raise invalid(f"{name} must be a scalar or vector")
    counts = {len(value) for value in given.values() if value.ndim}
    if len(counts) > 1:
        raise invalid("starts, limits, and deltas must have the same shape")
    rows = counts.pop() if counts else 1
    start, limit, step = (
        value if value.ndim else np.broadcast_to(value, (rows,)) for value in given.values()
    )
    if (step == 0).any():
        raise invalid("Requires delta != 0")
    return [start, limit, step]


def _whole_lengths(start: Array, limit: Array, step: Array) -> Array:
    start, limit, step = (v.astype(np.int64) for v in (start, limit, step))
    return np.asarray(np.maximum(-((start - limit) // step), 0))


def _real_lengths(start: Array, limit: Array, step: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        # In the element type, so that a last bit decides as it does in TF.
        counts = np.ceil((limit - start) / step)
    if not np.isfinite(counts).all():
        # Of infinities the wrong way off there is nothing.
        away = ((step > 0) & (limit < start)) | ((step < 0) & (limit > start))
        counts = np.where(away, 0, counts)
        if not np.isfinite(counts).all():
            raise invalid("Requires finite starts, limits and deltas")
    return np.asarray(np.minimum(np.maximum(counts, 0), _MOST), np.int64)


_MOST: Final = 2.0**60
"""A length that is too large, and still an integer."""
_PADDED: Final = 4
"""Rows are padded to the longest where that makes no more than so many times the elements."""


def _summed(start: Array, step: Array, lengths: Array, ends: Array, longest: int) -> Array:
    """Each start and what comes of adding its step again and again."""
    count = len(lengths)
    if longest <= count and longest * count <= _PADDED * ends[-1:].sum():
        # Many short rows take a step together.
        sums = np.empty((longest, count), start.dtype)
        sums[:1] = start
        for before, here in pairwise(sums):
            np.add(before, step, out=here)
        inside = np.arange(longest, dtype=np.int32) < lengths.astype(np.int32)[:, None]
        return np.asarray(sums.T[inside])
    out = np.repeat(step, lengths)
    some = np.flatnonzero(lengths)
    ends = ends[some]
    first = ends - lengths[some]
    out[first] = start[some]
    for begin, end in zip(first.tolist(), ends.tolist(), strict=True):
        np.add.accumulate(out[begin:end], out=out[begin:end])
    return out


# ---------------------------------------------------------------- cells
@portable(
    "RaggedTensorToSparse",
    host_inputs=("rt_nested_splits",), host_outputs=("sparse_indices", "sparse_dense_shape"),
)  # fmt: skip
def ragged_to_sparse(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any, Array]]:
    """The coordinates of all elements, from the innermost dimension out."""

    def run(*inputs: Any) -> tuple[Array, Any, Array]:
        *nested, values = inputs
        shape = tuple(values.shape)
        if not shape:
            raise invalid(f"flat_values must have ndims >= 1, got {len(shape)}")
        _check_cover(nested, shape[0])
        grid = np.indices(shape, np.int64).reshape(len(shape), -1)
        columns, size = list(grid[1:]), [*shape[1:]]
        row = grid[0]
        for splits in reversed(nested):
            lengths = np.diff(splits).astype(np.int64)
            parent = np.repeat(np.arange(len(lengths)), lengths)
            own = np.arange(len(parent)) - np.repeat(splits[:-1].astype(np.int64), lengths)
            columns.insert(0, own[row])
            size.insert(0, int(lengths.max(initial=0)))
            row = parent[row]
        columns.insert(0, row)
        size.insert(0, len(nested[0]) - 1)
        flat = copy(xp, xp.reshape(values, (-1,)))
        return np.stack(columns, axis=1), flat, np.array(size, np.int64)

    return run


def _check_cover(nested: Sequence[Array], count: int) -> None:
    """Raises InvalidArgumentError unless each level of splits covers all of the next one."""
    for level, splits in enumerate(nested):
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else count
        if splits.ndim != 1 or not len(splits):
            raise invalid("ragged splits may not be empty.")
        if splits[0] != 0:
            raise invalid("First value of ragged splits must be 0.")
        if (np.diff(splits) < 0).any():
            raise invalid("Ragged splits must be sorted in ascending order.")
        if splits[-1] != below:
            raise invalid(
                "Final value of ragged splits must match the length of the corresponding ragged "
                f"values: {int(splits[-1])} vs. {below}"
            )
