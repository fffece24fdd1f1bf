"""Operations on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import INTS, KernelTable, NodeSig

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one

table = KernelTable()


@table.binder("LeftShift", "RightShift", T=INTS, out=True)
def _shift(sig: NodeSig) -> Callable[..., Array]:
    ufunc = np.left_shift if sig.op == "LeftShift" else np.right_shift
    limit = sig.in_dtypes[0].size * 8 - 1
    amount = sig.const(1)
    if amount is not None and np.all((amount >= 0) & (amount <= limit)):
        return ufunc
    low, high = (sig.in_dtypes[0].np.type(v) for v in (0, limit))

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        return ufunc(x, np.clip(y, low, high), out)

    return run


@table.binder("PopulationCount", T=INTS)
def _population_count(sig: NodeSig) -> Callable[..., Array]:
    # NumPy counts the bits of the absolute value; the bits themselves are wanted.
    size = sig.in_dtypes[0].size
    unsigned = np.dtype(f"u{size}")
    count: Any = getattr(np, "bitwise_count", None)
    if count is not None:
        return lambda x: count(np.asarray(x).view(unsigned))

    def run(x: Array) -> Array:  # NumPy 1 has no such ufunc
        octets = np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8).reshape(-1, size)
        return np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.uint8).reshape(np.shape(x))

    return run
