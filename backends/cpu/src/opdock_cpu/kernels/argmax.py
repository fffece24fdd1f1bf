"""The positions of extremes: along rows by NumPy, along other dimensions by a generated loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import REALS, KernelTable, NodeSig, axes, dtypes
from opdock_cpu.jit.looped import Looped

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_MANY: Final = 1 << 10
"""Elements from which a loop is quicker than NumPy."""
_WIDE: Final = 8
"""Columns from which the loop over them pays."""
_COLUMNS: Final = 512
"""Columns of a block: the best of them stay in the nearest cache."""


def _best(
    begin: int, end: int, out: Array, best: Array, x: Array, length: int, columns: int,
    blocks: int, least: int,
) -> None:  # fmt: skip
    """A turn is a block of columns. The first of equal elements counts, and no NaN does."""
    for t in range(begin, end):
        to, first = t // blocks * columns, t % blocks * _COLUMNS
        last = min(first + _COLUMNS, columns)
        for r in range(length):
            row = (t // blocks * length + r) * columns
            for c in range(first, last):
                value, held, at = x[row + c], best[to + c], out[to + c]
                better = value < held if least > 0 else value > held
                best[to + c] = value if better else held
                out[to + c] = r if better else at


_BEST: Final = Looped(_best, fixed=("least",))


@table.binder(
    "ArgMax", "ArgMin", T=REALS - {dtypes.float16, dtypes.bfloat16}, host_inputs=("dimension",)
)
def _arg(sig: NodeSig) -> Callable[..., Array]:
    fn = np.argmax if sig.op == "ArgMax" else np.argmin
    kind, least = sig.in_dtypes[0], sig.op == "ArgMin"
    worst = math.inf if least else -math.inf
    # What no whole number is beyond may be the first of them as well.
    start = worst if kind.is_floating else kind.max if least else kind.min
    dtype, floating = sig.out_dtypes[0].np, kind.is_floating

    def run(x: Array, dimension: Array) -> Array:
        axis = axes.searched(dimension, x.shape) % x.ndim
        lead, rest = x.shape[:axis], x.shape[axis + 1 :]
        length, columns = x.shape[axis], math.prod(rest)
        if columns >= _WIDE and x.size >= _MANY:
            out, best = np.zeros((*lead, *rest), dtype), np.full((*lead, *rest), start, x.dtype)
            blocks = -(-columns // _COLUMNS)
            numbers = length, columns, blocks, int(least)
            if _BEST(math.prod(lead) * blocks, x.size, out, best, x, *numbers):
                return out
        found = fn(x, axis)
        # NumPy takes a NaN for the extreme, TF never does.
        if floating and np.isnan(_at(x, found, axis)).any():
            found = fn(np.where(np.isnan(x), worst, x), axis)
        return np.asarray(found).astype(dtype, copy=False)

    return run


def _at(x: Array, positions: Any, axis: int) -> Array:
    """The elements at `positions` along `axis`."""
    if x.ndim == 1:
        return np.asarray(x[positions])
    if axis % x.ndim == x.ndim - 1:
        rows = positions.reshape(-1)
        return np.asarray(x.reshape(-1, x.shape[-1])[np.arange(rows.size), rows])
    return np.take_along_axis(x, np.expand_dims(positions, axis), axis)
