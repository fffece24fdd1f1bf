"""What operations on rows as sets give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]
Sets = dict[tuple[int, ...], set[Any]]


def _of_dense(values: Array) -> Sets:
    return {place: set(values[place].tolist()) for place in np.ndindex(*values.shape[:-1])}


def _of_sparse(indices: Array, values: Array, dense_shape: Array) -> Sets:
    found: Sets = {place: set() for place in np.ndindex(*(int(n) for n in dense_shape[:-1]))}
    for place, value in zip(indices.tolist(), values.tolist(), strict=True):
        found[tuple(place[:-1])].add(value)
    return found


def _result(attrs: Attrs, a: Sets, b: Sets, outer: Any, dtype: Any) -> tuple[Array, Array, Array]:
    indices: list[list[int]] = []
    values: list[Any] = []
    longest = 0
    for place, first in a.items():
        second = b[place]
        both = {
            "a-b": first - second, "b-a": second - first,
            "intersection": first & second, "union": first | second,
        }[attrs["set_operation"].lower()]  # fmt: skip
        longest = max(longest, len(both))
        for i, value in enumerate(sorted(both)):
            indices.append([*place, i])
            values.append(value)
    rank = len(outer) + 1
    return (
        np.array(indices, np.int64).reshape(-1, rank),
        np.array(values, dtype),
        np.array([*outer, longest], np.int64),
    )


@reference("DenseToDenseSetOperation")
def dense_to_dense(attrs: Attrs, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Row by row."""
    return _result(attrs, _of_dense(a), _of_dense(b), a.shape[:-1], a.dtype)


@reference("DenseToSparseSetOperation")
def dense_to_sparse(attrs: Attrs, a: Array, *b: Array) -> tuple[Array, Array, Array]:
    """Row by row."""
    return _result(attrs, _of_dense(a), _of_sparse(*b), a.shape[:-1], a.dtype)


@reference("SparseToSparseSetOperation")
def sparse_to_sparse(attrs: Attrs, *given: Array) -> tuple[Array, Array, Array]:
    """Row by row."""
    a, b = _of_sparse(*given[:3]), _of_sparse(*given[3:])
    return _result(attrs, a, b, given[2][:-1], given[1].dtype)


@reference("SetSize")
def set_size(attrs: Attrs, indices: Array, values: Array, dense_shape: Array) -> Array:
    """Different values of each row."""
    out = np.zeros([int(n) for n in dense_shape[:-1]], np.int64)
    for place, found in _of_sparse(indices, values, dense_shape).items():
        out[place] = len(found)
    return out
