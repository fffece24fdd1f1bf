"""One-hot encoding by writing the ones; the rest of the family is portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

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
