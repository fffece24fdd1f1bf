"""What the ops compute that cut a tensor into several."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _pieces(x: Array, axis: int, lengths: list[int]) -> tuple[Array, ...]:
    out, start = [], 0
    for length in lengths:
        out.append(np.take(x, range(start, start + length), axis))
        start += length
    return tuple(out)


@reference("Split")
def split(attrs: Attrs, axis: Array, x: Array) -> tuple[Array, ...]:
    """Equal pieces."""
    n = attrs["num_split"]
    return _pieces(x, int(axis), [x.shape[int(axis)] // n] * n)


@reference("SplitV")
def split_v(attrs: Attrs, x: Array, sizes: Array, axis: Array) -> tuple[Array, ...]:
    """Pieces of given lengths; -1 is what the others leave."""
    lengths = [int(s) for s in sizes]
    if -1 in lengths:
        lengths[lengths.index(-1)] = x.shape[int(axis)] - sum(s for s in lengths if s != -1)
    return _pieces(x, int(axis), lengths)


@reference("Unpack")
def unpack(attrs: Attrs, x: Array) -> tuple[Array, ...]:
    """One piece for each index of a dimension."""
    return tuple(np.asarray(np.take(x, i, attrs["axis"]), x.dtype) for i in range(attrs["num"]))
