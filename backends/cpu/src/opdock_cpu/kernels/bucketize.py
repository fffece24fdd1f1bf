"""Buckets: comparisons with few boundaries in vectors, or a search among many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_TYPES: Final = frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})
_FEW: Final = 16
"""Boundaries with all of which a number is compared."""


def _compare(begin: int, end: int, out: Array, x: Array, limits: Array, count: int) -> None:
    """How many boundaries are not above each number; all of them where it is no number."""
    for i in range(begin, end):
        below = 0
        for k in range(count):
            below += 0 if x[i] < limits[k] else 1
        out[i] = below


def _search(begin: int, end: int, out: Array, x: Array, limits: Array, count: int) -> None:
    """The same by halves."""
    for i in range(begin, end):
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if x[i] < limits[middle]:
                high = middle
            else:
                low = middle + 1
        out[i] = low


_COMPARE: Final = Looped(_compare, fixed=("count",))
_SEARCH: Final = Looped(_search)


@table.binder("Bucketize", T=_TYPES)
def bucketize(sig: NodeSig) -> Callable[[Array], Array]:
    """How many boundaries are not above each number."""
    plain: Callable[[Array], Array] = portable_kernel(sig)  # which says what is wrong with them
    single = sig.in_dtypes[0] is dtypes.float32
    # The boundaries are of single precision, and double precision has all numbers of the others.
    limits = np.asarray(sig.attrs["boundaries"], np.float32)
    limits = limits if single else limits.astype(np.float64)
    count = limits.size
    loop, steps = (_COMPARE, count) if count <= _FEW else (_SEARCH, 4 * count.bit_length())

    def run(x: Array) -> Array:
        out = np.empty(x.shape, np.int32)
        if x.size and count and loop(x.size, steps * x.size, out, x, limits, count):
            return out
        return plain(x)

    return run
