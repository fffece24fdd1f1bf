"""What the ops compute that rearrange tensors along their dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Tile")
def tile(attrs: Attrs, x: Array, multiples: Array) -> Array:
    """Indices start again where the input ends."""
    out = np.empty([d * int(m) for d, m in zip(x.shape, multiples, strict=True)], x.dtype)
    for place in np.ndindex(*out.shape):
        out[place] = x[tuple(p % d for p, d in zip(place, x.shape, strict=True))]
    return out


def _backwards(x: Array, axes: list[int]) -> Array:
    out = np.empty(x.shape, x.dtype)
    for place in np.ndindex(*x.shape):
        out[place] = x[tuple(x.shape[i] - 1 - p if i in axes else p for i, p in enumerate(place))]
    return out


@reference("ReverseV2")
def reverse_v2(attrs: Attrs, x: Array, axis: Array) -> Array:
    """Backwards along the named dimensions."""
    return _backwards(x, [int(a) % x.ndim for a in axis])


@reference("Reverse")
def reverse(attrs: Attrs, x: Array, marks: Array) -> Array:
    """Backwards along the marked dimensions."""
    return _backwards(x, [i for i, m in enumerate(marks) if m])


@reference("ReverseSequence")
def reverse_sequence(attrs: Attrs, x: Array, lengths: Array) -> Array:
    """The first elements of each sequence backwards, the rest in place."""
    along, batch = attrs["seq_dim"], attrs["batch_dim"]
    out = x.copy()
    for place in np.ndindex(*x.shape):
        n = int(lengths[place[batch]])
        if place[along] < n:
            source = list(place)
            source[along] = n - 1 - place[along]
            out[place] = x[tuple(source)]
    return out


@reference("Roll")
def roll(attrs: Attrs, x: Array, shift: Array, axis: Array) -> Array:
    """Each shift in turn."""
    out = x
    for s, a in zip(shift.reshape(-1), axis.reshape(-1), strict=True):
        n = x.shape[int(a)]
        out = np.take(out, [(i - int(s)) % n for i in range(n)], int(a))
    return out
