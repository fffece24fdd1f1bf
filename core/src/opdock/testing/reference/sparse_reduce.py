"""Reductions of sparse tensors, with a list of values for each cell that is left."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference


def _groups(
    keep: bool, indices: Any, values: Any, shape: Any, axes: Any
) -> tuple[dict[tuple[int, ...], list[Any]], list[int]]:
    """(the values of each cell that is left, the shape that is left)."""
    rank = len(shape)
    gone = {int(axis) % rank for axis in axes}
    found: dict[tuple[int, ...], list[Any]] = {}
    for cell, value in zip(indices, values, strict=True):
        place = tuple(
            0 if d in gone else int(cell[d]) for d in range(rank) if keep or d not in gone
        )
        found.setdefault(place, []).append(value)
    left = [1 if d in gone else int(shape[d]) for d in range(rank) if keep or d not in gone]
    return found, left


def _reduce(fold: Any, attrs: Any, indices: Any, values: Any, shape: Any, axes: Any) -> Any:
    found, left = _groups(attrs["keep_dims"], indices, values, shape, axes)
    out = np.zeros(left, values.dtype)
    for place, group in found.items():
        out[place] = fold(group)
    return out


def _reduce_sparse(fold: Any, attrs: Any, indices: Any, values: Any, shape: Any, axes: Any) -> Any:
    found, left = _groups(attrs["keep_dims"], indices, values, shape, axes)
    cells = sorted(found)
    folded = np.array([fold(found[cell]) for cell in cells], values.dtype)
    return (
        np.array(cells, np.int64).reshape(len(cells), len(left)),
        folded,
        np.array(left, np.int64),
    )


@reference("SparseReduceSum")
def sums(attrs: Any, *parts: Any) -> Any:
    """Sums by what is left of the coordinates."""
    return _reduce(sum, attrs, *parts)


@reference("SparseReduceMax")
def extremes(attrs: Any, *parts: Any) -> Any:
    """Maxima by what is left of the coordinates."""
    return _reduce(max, attrs, *parts)


@reference("SparseReduceSumSparse")
def sparse_sums(attrs: Any, *parts: Any) -> Any:
    """The same as cells."""
    return _reduce_sparse(sum, attrs, *parts)


@reference("SparseReduceMaxSparse")
def sparse_extremes(attrs: Any, *parts: Any) -> Any:
    """The same as cells."""
    return _reduce_sparse(max, attrs, *parts)
