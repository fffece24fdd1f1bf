"""What the ops compute that take vectors for sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _distinct(x: Array, axis: int) -> tuple[Array, Array, Array]:
    """(slices in order of first occurrence, number of each slice, how often each number occurs)."""
    seen: dict[Any, int] = {}
    first: list[int] = []
    index: list[int] = []
    count: list[int] = []
    for place in range(x.shape[axis]):
        key = tuple(np.asarray(np.take(x, place, axis), x.dtype).reshape(-1).tolist())
        if key not in seen:
            seen[key] = len(first)
            first.append(place)
            count.append(0)
        index.append(seen[key])
        count[seen[key]] += 1
    values = np.take(x, np.array(first, np.int64), axis)
    return values, np.array(index, np.int64), np.array(count, np.int64)


@reference("Unique")
def unique(attrs: Attrs, x: Array) -> tuple[Array, ...]:
    """Values, numbered as they come up."""
    return _distinct(x, 0)[:2]


@reference("UniqueWithCounts")
def unique_with_counts(attrs: Attrs, x: Array) -> tuple[Array, ...]:
    """Values, numbered as they come up, and counted."""
    return _distinct(x, 0)


@reference("UniqueV2")
def unique_v2(attrs: Attrs, x: Array, axis: Array) -> tuple[Array, ...]:
    """Slices, numbered as they come up."""
    return _distinct(x, int(axis[0]) if axis.size else 0)[:2]


@reference("UniqueWithCountsV2")
def unique_with_counts_v2(attrs: Attrs, x: Array, axis: Array) -> tuple[Array, ...]:
    """Slices, numbered as they come up, and counted."""
    return _distinct(x, int(axis[0]) if axis.size else 0)


@reference("ListDiff")
def list_diff(attrs: Attrs, x: Array, y: Array) -> tuple[Array, Array]:
    """What `y` does not have."""
    other = y.tolist()
    kept = [i for i, value in enumerate(x.tolist()) if value not in other]
    places = np.array(kept, np.int64)
    return x[places], places


@reference("InvertPermutation")
def invert_permutation(attrs: Attrs, x: Array) -> Array:
    """Where each number is."""
    out = np.zeros(len(x), np.int64)
    for place, value in enumerate(x):
        out[int(value)] = place
    return out
