"""Kernels of rows that are replaced, raised or lowered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import ALL, NUMBERS, KernelTable, NodeSig, checks
from opdock_cpu.jit.looped import Looped

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


def _rows(x: Array, i: Array, v: Array) -> Array:
    """The rows that are meant; any number means one, as TF counts them round."""
    checks.check_changed(x, i, v)
    return i % x.shape[0] if i.size else i


@table.kernel("InplaceUpdate", T=ALL)
def inplace_update(ctx: Any, x: Array, i: Array, v: Array) -> Array:
    """Rows replaced; of equal rows the last wins."""
    out = np.array(x)
    out[_rows(x, i, v)] = v
    return out


_BLOCK: Final = 64
"""Columns of a turn, which goes through all rows: several may be the same."""


def _raised(
    begin: int, end: int, out: Array, rows: Array, v: Array, count: int, width: int
) -> None:
    for b in range(begin, end):
        for k in range(count):
            for c in range(b * _BLOCK, min((b + 1) * _BLOCK, width)):
                at = rows[k] * width + c
                out[at] = out[at] + v[k * width + c]


_RAISED: Final = Looped(_raised)


def _changed(x: Array, i: Array, v: Array) -> Array:
    out, rows = np.array(x, order="C"), _rows(x, i, v)
    width = v.size // max(len(v), 1)
    if not (v.size and _RAISED(-(-width // _BLOCK), v.size, out, rows, v, len(v), width)):
        np.add.at(out, rows, v)
    return out


@table.kernel("InplaceAdd", T=NUMBERS)
def inplace_add(ctx: Any, x: Array, i: Array, v: Array) -> Array:
    """Rows raised."""
    return _changed(x, i, v)


@table.kernel("InplaceSub", T=NUMBERS)
def inplace_sub(ctx: Any, x: Array, i: Array, v: Array) -> Array:
    """Rows lowered: raised by what is as far below zero, which is exact."""
    return _changed(x, i, np.negative(v))


@table.kernel("DeepCopy", T=ALL)
def deep_copy(ctx: Any, x: Array) -> Array:
    """The same in memory of its own."""
    return np.array(x)


@table.binder("Empty", dtype=ALL, host_inputs=("shape",))
def empty(sig: NodeSig) -> Callable[[Array], Array]:
    """Zeros, asked for or not: what memory held before is nobody's to read."""
    dtype = sig.attrs["dtype"]

    def run(shape: Array) -> Array:
        dims = checks.empty_shape(shape)
        return np.full(dims, b"", object) if dtype.name == "string" else np.zeros(dims, dtype.np)

    return run
