"""What the ops compute that make one tensor of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _join(values: list[Array], axis: int) -> Array:
    at = axis % values[0].ndim
    lengths = list(values[0].shape)
    lengths[at] = sum(v.shape[at] for v in values)
    out = np.empty(lengths, values[0].dtype)
    start = 0
    for value in values:
        where = [slice(None)] * out.ndim
        where[at] = slice(start, start + value.shape[at])
        out[tuple(where)] = value
        start += value.shape[at]
    return out


@reference("ConcatV2")
def concat_v2(attrs: Attrs, values: list[Array], axis: Array) -> Array:
    """One after the other along a dimension."""
    return _join(values, int(axis))


@reference("Concat")
def concat(attrs: Attrs, axis: Array, values: list[Array]) -> Array:
    """One after the other along a dimension."""
    return _join(values, int(axis))


@reference("ParallelConcat")
def parallel_concat(attrs: Attrs, values: list[Array]) -> Array:
    """One after the other along the first dimension."""
    return _join(values, 0)


@reference("ConcatOffset")
def concat_offset(attrs: Attrs, axis: Array, shapes: list[Array]) -> tuple[Array, ...]:
    """Where each piece starts."""
    out, start = [], 0
    for shape in shapes:
        offset = np.zeros(len(shape), np.int64)
        offset[int(axis)] = start
        start += int(shape[int(axis)])
        out.append(offset)
    return tuple(out)


@reference("Pack")
def pack(attrs: Attrs, values: list[Array]) -> Array:
    """Each value is one index of a new dimension."""
    at = attrs["axis"] % (values[0].ndim + 1)
    lengths = list(values[0].shape)
    lengths.insert(at, len(values))
    out = np.empty(lengths, values[0].dtype)
    for i, value in enumerate(values):
        where: tuple[Any, ...] = (*[slice(None)] * at, i)
        out[where] = value
    return out
