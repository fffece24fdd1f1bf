"""Ragged tensors padded to tensors: a generated loop copies rows, from the innermost level out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()


def _pad(
    begin: int, end: int, out: Array, values: Array, splits: Array, width: int, inner: int
) -> None:  # fmt: skip
    """A turn is a row: what it has, cut off at the width."""
    for r in range(begin, end):
        first, to = splits[r] * inner, r * width * inner
        have = min(splits[r + 1] - splits[r], width)
        for i in range(have * inner):
            out[to + i] = values[first + i]


_PAD: Final = Looped(_pad)


@table.binder("RaggedTensorToTensor", host_inputs=("shape", "row_partition_tensors"))
def to_tensor(sig: NodeSig) -> Callable[..., Array]:
    """Each value at its place, the default where there is none; what is outside is dropped."""
    kinds = [str(kind) for kind in sig.attrs["row_partition_types"]]
    plain = portable_kernel(sig)

    def run(shape: Array, values: Array, default: Array, *partitions: Array) -> Any:
        levels = None if values.dtype.hasobject or not values.ndim else _levels(kinds, partitions)
        out = None
        if levels is not None and levels[-1][-1] == len(values):
            out = _padded(shape, values, np.asarray(default), levels)
        return plain(shape, values, default, *partitions) if out is None else out

    return run


def _levels(kinds: Sequence[str], partitions: Sequence[Array]) -> list[Array] | None:
    """The splits of each level from the outside in; None if they are no proper ones."""
    if all(kind == "ROW_SPLITS" for kind in kinds):
        levels = [np.asarray(p, np.int64) for p in partitions]
    elif kinds[0] == "FIRST_DIM_SIZE" and all(kind == "VALUE_ROWIDS" for kind in kinds[1:]):
        levels, rows = [], int(partitions[0])
        for ids in partitions[1:]:
            if ids.ndim != 1 or (ids.size and not 0 <= ids[0] <= ids[-1] < rows):
                return None
            if (ids[1:] < ids[:-1]).any():
                return None
            levels.append(np.searchsorted(ids, np.arange(rows + 1)).astype(np.int64))
            rows = len(ids)
    else:
        return None
    for splits in levels:
        if splits.ndim != 1 or len(splits) < 2 or splits[0] or (np.diff(splits) < 0).any():
            return None
    if not levels or any(len(inner) - 1 != outer[-1] for outer, inner in pairwise(levels)):
        return None
    return levels


def _padded(shape: Array, values: Array, default: Array, levels: list[Array]) -> Array | None:
    """The tensor; None where its shape or the default do not fit, and without code."""
    inner, rank = values.shape[1:], len(levels) + values.ndim
    rows = [len(levels[0]) - 1]
    known = (*rows, *(int(np.diff(splits).max()) for splits in levels), *inner)
    wanted = [-1] * rank if np.ndim(shape) == 0 and int(shape) == -1 else checks.ints(shape)
    size = tuple(n if d < 0 else d for d, n in zip(wanted, known, strict=False))
    if len(wanted) != rank or size[rank - len(inner) :] != inner:
        return None
    if default.ndim and default.shape != inner:
        return None
    widths = size[1 : len(levels) + 1]
    if rows[0] != size[0]:
        levels, widths = [np.array([0, *rows], np.int64), *levels], (size[0], *widths)
    found = values
    for splits, width in zip(reversed(levels), reversed(widths), strict=True):
        filled = _filled(found, splits, width, default)
        if filled is None:
            return None
        found = filled
    return found.reshape(size)


def _filled(values: Array, splits: Array, width: int, default: Array) -> Array | None:
    """The rows that splits make of values, padded to a width; None without code."""
    count = len(splits) - 1
    out = np.empty((count, width, *values.shape[1:]), values.dtype)
    out[...] = default
    if not out.size:
        return out
    # Bytes are copied, of whatever type.
    word = np.dtype(f"i{min(values.dtype.itemsize, 8)}")
    raw = [a.reshape(-1).view(word) for a in (out, np.ascontiguousarray(values))]
    each = math.prod(values.shape[1:]) * (values.dtype.itemsize // word.itemsize)
    return out if _PAD(count, out.size, *raw, splits, width, each) else None
