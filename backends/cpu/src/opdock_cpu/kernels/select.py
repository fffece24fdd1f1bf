"""One-hot encoding by writing the ones, and where elements are not zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit.looped import Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _all_inside(indices: Array, n: int) -> bool:
    return n > 0 and indices.size > 0 and indices.min() >= 0 and indices.max() < n


@table.binder("OneHot", out=True, host_inputs=("depth",))
def one_hot(sig: NodeSig) -> Callable[..., Array]:
    """One value at the index, another elsewhere."""
    given, dtype = sig.attrs["axis"], sig.out_dtypes[0].np

    def run(indices: Any, depth: Any, on: Any, off: Any, out: Array | None) -> Array:
        indices = np.asarray(indices)
        rank = indices.ndim
        n, axis = checks.one_hot_axis(depth, given, rank)
        if out is None:
            out = np.empty((*indices.shape[:axis], n, *indices.shape[axis:]), dtype)
        out[...] = off
        if axis == rank and _all_inside(indices, n):
            rows = indices.reshape(-1)
            out.reshape(-1, n)[np.arange(rows.size), rows] = on
            return out
        flat = indices.reshape(-1).astype(np.int64)
        lines = np.moveaxis(out, axis, -1)
        inside = (flat >= 0) & (flat < n)
        places = np.flatnonzero(inside)
        if places.size:
            where = np.unravel_index(places, indices.shape) if rank else ()
            lines[(*where, flat[places])] = on
        return out

    return run


# ---------------------------------------------------------------- where
def _count(begin: int, end: int, counts: Array, x: Array, width: int) -> None:
    for r in range(begin, end):
        found = 0
        for c in range(r * width, (r + 1) * width):
            found += int(x[c] != 0)
        counts[r] = found


def _places(
    begin: int, end: int, out: Array, ends: Array, x: Array, sizes: Array, width: int, rank: int
) -> None:
    """A turn is a row, whose places are written up to `ends`."""
    for r in range(begin, end):
        at = (ends[r - 1] if r > 0 else 0) * rank
        for c in range(width):
            if x[r * width + c] != 0:
                rest = r
                for d in range(rank - 2, 0, -1):
                    out[at + d] = rest % sizes[d]
                    rest = rest // sizes[d]
                out[at] = rest
                out[at + rank - 1] = c
                at += rank


_COUNT: Final = Looped(_count)
_PLACES: Final = Looped(_places)


@table.binder("Where", T=NUMBERS | {dtypes.bool})
def where(sig: NodeSig) -> Callable[[Array], Array]:
    """The coordinates of what is not zero, in order."""
    plain: Callable[[Array], Array] = portable_kernel(sig)

    def run(x: Array) -> Array:
        if x.ndim and x.size:
            width = x.shape[-1]
            counts = np.empty(x.size // width, np.int64)
            if _COUNT(len(counts), x.size, counts, x, width):
                ends = np.cumsum(counts)
                out = np.empty((int(ends[-1]), x.ndim), np.int64)
                sizes = np.array(x.shape, np.int64)
                if _PLACES(len(counts), 4 * x.size, out, ends, x, sizes, width, x.ndim):
                    return out
        return plain(x)

    return run
