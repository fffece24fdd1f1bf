"""Ragged tensors as nested lists."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference


def _nested(splits: list[Any], items: list[Any]) -> list[Any]:
    """Nested lists of items, as the splits part them."""
    for level in reversed(splits):
        items = [items[int(a) : int(b)] for a, b in itertools.pairwise(level)]
    return items


def _flat(rows: list[Any], depth: int) -> tuple[list[Any], list[Any]]:
    """(splits of each level, the items of the innermost one)."""
    splits = []
    for _ in range(depth):
        splits.append(np.cumsum([0, *map(len, rows)], dtype=np.int64))
        rows = [item for row in rows for item in row]
    return splits, rows


@reference("RaggedGather")
def gather(attrs: Any, splits: Any, values: Any, indices: Any) -> Any:
    """Picks rows of nested lists."""
    rows = _nested(list(splits), list(values))

    def pick(index: Any) -> Any:
        return [pick(i) for i in index] if np.ndim(index) else rows[int(index)]

    found, items = _flat(pick(indices), attrs["OUTPUT_RAGGED_RANK"])
    every = np.zeros((len(items), *values.shape[1:]), values.dtype)
    for i, item in enumerate(items):
        every[i] = item
    return (*found, every)


@reference("RaggedRange")
def ranges(attrs: Any, starts: Any, limits: Any, deltas: Any) -> Any:
    """Counts from each start to each limit."""
    rows = []
    for start, limit, step in np.broadcast(*map(np.atleast_1d, (starts, limits, deltas))):
        row = []
        while (start < limit) if step > 0 else (start > limit):
            row.append(start)
            start = start + step
        rows.append(row)
    (splits,), items = _flat(rows, 1)
    return splits, np.array(items, np.asarray(starts).dtype)


@reference("RaggedTensorToSparse")
def to_sparse(attrs: Any, splits: Any, values: Any) -> Any:
    """Goes through the nested lists."""
    rows = _nested(list(splits), list(values))
    depth = len(splits)
    cells, found = [], []

    def visit(item: Any, place: tuple[int, ...]) -> None:
        if len(place) == depth + 1:
            for inner in np.ndindex(*np.shape(item)):
                cells.append((*place, *inner))
                found.append(np.asarray(item, values.dtype)[inner])
            return
        for i, child in enumerate(item):
            visit(child, (*place, i))

    visit(rows, ())
    size = [len(rows)]
    for level in splits:
        size.append(max((int(b - a) for a, b in itertools.pairwise(level)), default=0))
    size += values.shape[1:]
    every = np.empty(len(found), values.dtype)
    every[:] = found
    return np.array(cells, np.int64).reshape(-1, len(size)), every, np.array(size, np.int64)
