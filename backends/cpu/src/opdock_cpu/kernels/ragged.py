"""Ragged tensors by their splits: repeated offsets and one gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _spans(starts: Array, lengths: Array) -> Array:
    """The numbers from each start on, so many each, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _check_splits(nested: Sequence[Array], values: Array) -> None:
    """Raises InvalidArgumentError unless each level of splits covers the next one."""
    for level, splits in enumerate(nested):
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else values.shape[0]
        if splits.ndim != 1 or not len(splits):
            raise checks.invalid("Ragged splits must be vectors with at least one element")
        if splits[0] < 0 or (np.diff(splits) < 0).any():
            raise checks.invalid("Ragged splits must be sorted in ascending order")
        if splits[-1] > below:
            raise checks.invalid(
                f"Ragged splits must not point past values: {int(splits[-1])} vs. {below}"
            )


# ---------------------------------------------------------------- gather
@table.binder("RaggedGather")
def ragged_gather(sig: NodeSig) -> Callable[..., Any]:
    """Rows by index; each level of splits is counted anew."""
    depth = int(sig.attrs["PARAMS_RAGGED_RANK"])

    def run(*inputs: Array) -> Any:
        nested, values, indices = inputs[:depth], inputs[depth], inputs[depth + 1]
        if not values.ndim:
            raise checks.invalid("params.rank must be nonzero")
        _check_splits(nested, values)
        rows = indices.reshape(-1)
        count, kind = len(nested[0]) - 1, nested[0].dtype
        bad = (rows < 0) | (rows >= count)
        if bad.any():
            place = checks.dims(np.unravel_index(int(np.argmax(bad)), indices.shape))
            where = "indices" + (place if indices.ndim else "")
            raise checks.invalid(f"{where} = {rows[int(np.argmax(bad))]} is not in [0, {count})")
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
            rows = _spans(starts, lengths)
        if not indices.ndim:
            found = found[1:]  # one row is what stands in it
        return (*found, values[rows]) if found else values[rows]

    return run


# ---------------------------------------------------------------- ranges
@table.binder("RaggedRange")
def ragged_range(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Ranges of different lengths, one after the other."""
    kind, element = sig.out_dtypes[0].np, sig.out_dtypes[1].base_dtype
    integral = element.is_integer

    def run(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
        for name, given in (("starts", starts), ("limits", limits), ("deltas", deltas)):
            if given.ndim > 1:
                raise checks.invalid(f"{name} must be a scalar or vector")
        sizes = {len(given) for given in (starts, limits, deltas) if given.ndim}
        if len(sizes) > 1:
            raise checks.invalid("starts, limits, and deltas must have the same shape")
        rows = sizes.pop() if sizes else 1
        start, limit, step = (np.broadcast_to(g, (rows,)) for g in (starts, limits, deltas))
        if (step == 0).any():
            raise checks.invalid("Requires delta != 0")
        lengths = _lengths(start, limit, step, integral)
        if lengths.size and float(lengths.sum(dtype=np.float64)) > np.iinfo(np.int64).max / 16:
            raise checks.invalid("Requires ((limit - start) / delta) to fit into memory")
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
        place = _spans(np.zeros(rows, np.int64), lengths)
        if integral:
            values = np.repeat(start, lengths) + place * np.repeat(step, lengths)
        else:
            values = np.repeat(start, lengths) + place.astype(start.dtype) * np.repeat(
                step, lengths
            )
        return splits, values.astype(element.np, copy=False)

    return run


def _lengths(start: Array, limit: Array, step: Array, integral: bool) -> Array:
    if integral:
        wide = [v.astype(np.int64) for v in (start, limit, step)]
        counts = -((wide[0] - wide[1]) // wide[2])
        return np.asarray(np.maximum(counts, 0))
    real = [v.astype(np.float64) for v in (start, limit, step)]
    counts = np.ceil((real[1] - real[0]) / real[2])
    if not np.isfinite(counts).all():
        raise checks.invalid("Requires finite starts, limits and deltas")
    return np.asarray(np.maximum(counts, 0), np.int64)


# ---------------------------------------------------------------- cells
@table.binder("RaggedTensorToSparse")
def ragged_to_sparse(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The coordinates of all elements, from the innermost dimension out."""

    def run(*inputs: Array) -> tuple[Array, Array, Array]:
        *nested, values = inputs
        if not values.ndim:
            raise checks.invalid(f"flat_values must have ndims >= 1, got {values.ndim}")
        _check_cover(nested, values)
        inner = values.shape[1:]
        grid = np.indices(values.shape, np.int64).reshape(values.ndim, -1)
        columns, size = list(grid[1:]), [*inner]
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
        return np.stack(columns, axis=1), values.flatten(), np.array(size, np.int64)

    return run


def _check_cover(nested: Sequence[Array], values: Array) -> None:
    """Raises InvalidArgumentError unless each level of splits covers all of the next one."""
    for level, splits in enumerate(nested):
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else values.shape[0]
        if splits.ndim != 1 or not len(splits):
            raise checks.invalid("ragged splits may not be empty.")
        if splits[0] != 0:
            raise checks.invalid("First value of ragged splits must be 0.")
        if (np.diff(splits) < 0).any():
            raise checks.invalid("Ragged splits must be sorted in ascending order.")
        if splits[-1] != below:
            raise checks.invalid(
                "Final value of ragged splits must match the length of the corresponding ragged "
                f"values: {int(splits[-1])} vs. {below}"
            )
