"""The cells of sparse tensors in host memory: checks of their parts, their places, runs and unions.

How many there are is a matter of values, so places are worked out on the host, by portable kernels
and by backends' own, which find this as `opdock.plugin.cells`; values stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opdock.kernels.array_api import dims, invalid

__all__ = [
    "Array", "Runs", "Union", "check_inside", "check_order", "check_parts", "check_ranks",
    "combined", "distinct", "flat", "keys", "outside", "pick", "runs", "sizes", "unflat", "union",
]  # fmt: skip

Array = npt.NDArray[Any]
"""An array in host memory."""

_LIMIT = 2**63 - 1


def check_ranks(*parts: tuple[str, int, Any]) -> None:
    """Raises InvalidArgumentError unless each named array is a vector, or a matrix, as it must."""
    for name, rank, array in parts:
        if len(array.shape) != rank:
            kind = "matrix" if rank == 2 else "vector"
            raise invalid(f"{name} should be a {kind} but received shape {dims(array.shape)}")


def check_parts(indices: Any, values: Any, shape: Any) -> None:
    """Raises InvalidArgumentError unless the parts of a sparse tensor fit together."""
    check_ranks(
        ("Input indices", 2, indices), ("Input values", 1, values), ("Input shape", 1, shape)
    )
    if indices.shape[0] != values.shape[0]:
        raise invalid(
            "indices and values rows (indexing dimension) must match. (indices = "
            f"{indices.shape[0]}, values = {values.shape[0]})"
        )
    if indices.shape[1] != shape.shape[0]:
        raise invalid("Shape rank must be SparseTensor rank.")


def sizes(shape: Array) -> tuple[int, ...]:
    """The dimensions of a dense shape, checked before anything of that size is made."""
    found = tuple(int(n) for n in shape)
    for n in found:
        if n < 0:
            raise invalid(f"Dimension {n} must be >= 0")
    if math.prod(found) > _LIMIT:
        raise invalid(f"Shape {dims(found)} would have more than 2**63 - 1 elements")
    return found


def check_inside(indices: Array, shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError for the first cell that is outside of the shape."""
    bad = outside(indices, shape)
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid(
            f"indices[{row}] = {dims(indices[row])} is out of bounds: need 0 <= index < "
            f"{dims(shape)}"
        )


def outside(indices: Array, shape: tuple[int, ...]) -> Array:
    """Which cells are outside of the shape."""
    # As numbers without a sign what is negative is beyond every limit.
    places = np.ascontiguousarray(indices, np.int64).view(np.uint64)
    bad = np.zeros(len(places), np.bool_)
    for column, size in zip(places.T, shape, strict=True):
        bad |= column >= size
    return bad


def check_order(indices: Array, shape: tuple[int, ...]) -> Array:
    """The place of each cell in the flat dense tensor.

    Raises:
        InvalidArgumentError: they are not all inside, in order, and different.
    """
    check_inside(indices, shape)
    place = flat(indices, shape)
    step = np.diff(place)
    if (step > 0).all():
        return place
    row = int(np.argmax(step <= 0)) + 1
    what = f"indices[{row}] = {dims(indices[row])}"
    if step[row - 1] == 0:
        raise invalid(f"{what} is repeated")
    raise invalid(
        f"{what} is out of order. Many sparse ops require sorted indices.\n"
        "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"
    )


def flat(indices: Array, shape: tuple[int, ...]) -> Array:
    """The place of each cell in the flat dense tensor; the cells are inside of the shape."""
    if not len(shape):
        return np.zeros(indices.shape[0], np.int64)
    return combined(list(indices.T), shape)


def combined(columns: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """`flat` of coordinates that come dimension by dimension, of one at least."""
    place = columns[0].astype(np.int64)
    for column, n in zip(columns[1:], shape[1:], strict=True):
        place *= n
        place += column
    return place


def unflat(place: Array, shape: tuple[int, ...]) -> Array:
    """The coordinates [n, rank] of places in a flat tensor."""
    out = np.empty((place.size, len(shape)), np.int64)
    rest = place
    for axis in range(len(shape) - 1, -1, -1):
        rest, out[:, axis] = np.divmod(rest, max(shape[axis], 1))
    return out


def keys(indices: Array) -> Array:
    """Numbers that order cells as their coordinates do, wherever they are."""
    if not indices.size:
        return np.zeros(indices.shape[0], np.int64)
    columns = np.ascontiguousarray(indices.T, np.int64)
    low = columns.min(axis=1)
    span = [b - a + 1 for a, b in zip(low.tolist(), columns.max(axis=1).tolist(), strict=True)]
    key, count, at = np.zeros(len(indices), np.int64), 1, 0
    while at < len(span):
        factors = _factors(span[at:], _LIMIT // len(indices))
        end, most = at + len(factors) - 1, factors[0]
        if end == at:  # alone it says too much
            part, most, end = _ranks(columns[at]), len(indices), at + 1
        else:
            part = np.array(factors[1:]) @ (columns[at:end] - low[at:end, None])
        if count * most > _LIMIT:
            # Numbers that grow too large give way to their ranks, of which there are few.
            key, count = _ranks(key), len(indices)
        key, count, at = key * most + part, count * most, end
    return key


def _factors(span: Sequence[int], limit: int) -> list[int]:
    """How many places the first dimensions have that a number below a limit tells apart.

    Returns:
        The places of all of them, then behind each, 1 behind the last.
    """
    most, count = 1, 0
    while count < len(span) and most * span[count] <= limit:
        most, count = most * span[count], count + 1
    return [most // math.prod(span[:n]) for n in range(count + 1)]


def _ranks(values: Array) -> Array:
    """The place of each value among the different ones."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


class Runs(NamedTuple):
    """Cells gathered by key.

    Attributes:
        order: the cells such that those of a key stand together, in their order.
        starts: where each key begins in that order.
    """

    order: Array
    starts: Array


def runs(key: Array) -> Runs:
    """Gathers cells by key, in ascending order of keys."""
    order = np.argsort(key, kind="stable")
    found = key[order]
    return Runs(
        order, np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]])[: key.size])
    )


class Union(NamedTuple):
    """The cells of two sparse tensors, in order.

    Attributes:
        source: where each cell is in the cells of both, one behind the other.
        a, b: where it is in either of them, or -1.
    """

    source: Array
    a: Array
    b: Array


def distinct(*parts: Array) -> list[Array]:
    """Keys of cells such that none is twice in its part: a cell's second key is another's first.

    Where several parts repeat a cell, the keys of its n-th occurrences are equal.
    """
    _, key = np.unique(np.concatenate(parts), return_inverse=True)
    split = np.split(key.reshape(-1), np.cumsum([len(part) for part in parts])[:-1])
    places = []
    for part in split:
        order, starts = runs(part)
        place = np.arange(len(part))
        lengths = np.diff(np.append(starts, len(part)))
        place[order] = place - np.repeat(starts, lengths)
        places.append(place)
    most = 1 + max((int(place.max(initial=0)) for place in places), default=0)
    return [part * most + place for part, place in zip(split, places, strict=True)]


def union(a: Array, b: Array) -> Union:
    """Merges the cells [n, rank] of two sparse tensors.

    A cell that both repeat is repeated: the first of one with the first of the other, as in TF.
    """
    key = keys(np.concatenate([a, b]))
    order = _merged(key, len(a))
    found, from_b = key[order], order >= len(a)
    if ((found[1:] == found[:-1]) & (from_b[1:] == from_b[:-1])).any():
        key = np.concatenate(distinct(key[: len(a)], key[len(a) :]))
        order = np.argsort(key, kind="stable")
        found, from_b = key[order], order >= len(a)
    # A cell of both: one of `a` with one of `b` right behind it.
    both = np.zeros(len(order), np.bool_)
    both[:-1] = (found[1:] == found[:-1]) & ~from_b[:-1] & from_b[1:]
    follows = np.concatenate([[False], both[:-1]])[: len(order)]
    partner = np.concatenate([order[1:], [0]])[: len(order)] - len(a)
    kept = ~follows
    in_a = np.where(from_b, -1, order)
    in_b = np.where(from_b, order - len(a), np.where(both, partner, -1))
    return Union(order[kept], in_a[kept], in_b[kept])


def _merged(key: Array, count: int) -> Array:
    """The stable order of keys of which the first so many are sorted, and the others, mostly."""
    first, second = key[:count], key[count:]
    if not all((part[1:] >= part[:-1]).all() for part in (first, second)):
        return np.argsort(key, kind="stable")
    order = np.empty(len(key), np.int64)
    order[np.arange(count) + np.searchsorted(second, first)] = np.arange(count)
    after = np.searchsorted(first, second, side="right")
    order[np.arange(len(second)) + after] = np.arange(count, len(key))
    return order


def pick(values: Array, at: Array) -> Array:
    """The values at some places, zero for -1."""
    out = np.zeros(len(at), values.dtype)
    there = at >= 0
    out[there] = values[at[there]]
    return out
