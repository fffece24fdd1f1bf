"""Labels and stitching: rows that are moved by generated code, or by NumPy's indexed reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, as_dtype, checks
from opdock_cpu.jit.looped import Array, Looped

__all__ = ["table"]

table = KernelTable()
_STRING = as_dtype("string")


def _gather(
    begin: int, end: int, out: Array, starts: Array, rows: Array, labels: Array, length: int,
    width: int, count: int,
) -> None:  # fmt: skip
    """Puts the rows of each label together; `starts`, zeros at first, says where they begin.

    While rows are moved, it says two places further on where the next one goes.
    """
    for _ in range(begin, end):
        for i in range(length):
            starts[int(labels[i]) + 2] += 1
        for k in range(count):
            starts[k + 2] += starts[k + 1]
        for i in range(length):
            k = int(labels[i]) + 1
            at = int(starts[k])
            starts[k] = at + 1
            for c in range(width):
                out[at * width + c] = rows[i * width + c]


_GATHER: Final = Looped(_gather, fixed=("width",))


def _gathered(rows: Array, labels: Array, count: int) -> list[Array]:
    """The rows of each label."""
    out, starts = np.empty_like(rows, order="C", subok=False), np.zeros(count + 2, np.int64)
    width = math.prod(rows.shape[1:])
    if _GATHER(1, 2 * rows.size, out, starts, rows, labels, labels.size, width, count):
        return [out[a:b] for a, b in itertools.pairwise(starts[: count + 1])]
    # Of few labels each takes a byte or two, which are sorted by their bits.
    narrow = labels.astype(np.min_scalar_type(count))
    order = np.argsort(narrow, kind="stable")
    cuts = np.searchsorted(narrow.take(order), np.arange(count + 1, dtype=narrow.dtype))
    return [rows.take(order[a:b], axis=0) for a, b in itertools.pairwise(cuts)]


@table.binder("DynamicPartition")
def dynamic_partition(sig: NodeSig) -> Callable[..., Any]:
    """The slices of each label."""
    count = sig.attrs["num_partitions"]

    def run(data: Any, partitions: Any) -> Any:
        checks.check_labelled(data, partitions)
        prefix = partitions.shape
        labels = np.reshape(partitions, -1)
        if labels.size and (labels.min() < 0 or labels.max() >= count):
            raise checks.not_in(np.asarray(partitions), count, "partitions")
        rows = np.reshape(data, (labels.size, *data.shape[len(prefix) :]))
        parts = _gathered(rows, labels, count)
        return parts[0] if count == 1 else tuple(parts)

    return run


def _scatter(
    begin: int, end: int, out: Array, rows: Array, index: Array, length: int, width: int
) -> None:
    """Puts each row where its index says; of equal ones the last stays."""
    for _ in range(begin, end):
        for i in range(length):
            at = int(index[i])
            for c in range(width):
                out[at * width + c] = rows[i * width + c]


_SCATTER: Final = Looped(_scatter, fixed=("width",))


@table.binder("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(sig: NodeSig) -> Callable[..., Array]:
    """Rows written where their indices say, one part after the other."""
    n, dtype = sig.attrs["N"], sig.out_dtypes[0]

    def run(*args: Any) -> Array:
        indices, data = args[:n], args[n:]
        tail, size = checks.check_parts(indices, data), 0
        for i, index in enumerate(indices):
            if np.size(index):
                if np.min(index) < 0:
                    raise checks.negative_place(i, int(np.min(index)))
                size = max(size, int(np.max(index)) + 1)
        shape = (size, *tail)
        out = np.full(shape, b"", object) if dtype is _STRING else np.zeros(shape, dtype.np)
        for index, part in zip(indices, data, strict=True):
            count = np.size(index)
            if not _SCATTER(1, np.size(part), out, part, index, count, math.prod(tail)):
                out[np.reshape(index, -1)] = np.reshape(part, (count, *tail))
        return out

    return run
