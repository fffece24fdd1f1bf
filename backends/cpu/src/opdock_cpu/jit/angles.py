"""Sine, cosine and tangent that stand alone: loops that look first how large angles are.

For what programs have as angles a few bits of 2 / pi suffice (`trigonometry.py`), which halves the
time; in clusters there is no room for the question. NumPy's code for AVX-512 is quicker, and serves
where a processor has that: what it has for others takes up to eleven times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin, tan
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit import llvm, numpy_codes, trigonometry
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
NEAR: Final = trigonometry.NEAR
_BLOCK: Final = 1 << 10
"""Elements of which none is far, or which count as such all together."""
cos_near, sin_near, tan_near = cos, sin, tan


def _far(x: Array, first: int, last: int) -> int:
    """How many angles are far, or none at all."""
    found = 0
    for i in range(first, last):
        found += 0 if abs(x[i]) < NEAR else 1
    return found


def _cosines(begin: int, end: int, out: Array, x: Array, size: int) -> None:
    """A turn is a block."""
    for t in range(begin, end):
        first, last = t * _BLOCK, min(t * _BLOCK + _BLOCK, size)
        if _far(x, first, last) == 0:
            for i in range(first, last):
                out[i] = cos_near(x[i])
        else:
            for i in range(first, last):
                out[i] = cos(x[i])


def _sines(begin: int, end: int, out: Array, x: Array, size: int) -> None:
    """A turn is a block."""
    for t in range(begin, end):
        first, last = t * _BLOCK, min(t * _BLOCK + _BLOCK, size)
        if _far(x, first, last) == 0:
            for i in range(first, last):
                out[i] = sin_near(x[i])
        else:
            for i in range(first, last):
                out[i] = sin(x[i])


def _tangents(begin: int, end: int, out: Array, x: Array, size: int) -> None:
    """A turn is a block."""
    for t in range(begin, end):
        first, last = t * _BLOCK, min(t * _BLOCK + _BLOCK, size)
        if _far(x, first, last) == 0:
            for i in range(first, last):
                out[i] = tan_near(x[i])
        else:
            for i in range(first, last):
                out[i] = tan(x[i])


_LOOPS: Final = {"Cos": Looped(_cosines), "Sin": Looped(_sines), "Tan": Looped(_tangents)}


def _when(sig: NodeSig) -> bool | str:
    if numpy_codes.wide(sig.op.lower()):
        return "NumPy has code for AVX-512"
    return llvm.available() or llvm.why_not()


@table.binder(*_LOOPS, T={dtypes.float32}, when=_when, out=True, priority=1)
def _bind(sig: NodeSig) -> Callable[..., Any]:
    loop, plain = _LOOPS[sig.op], portable_kernel(sig, out=True)

    def run(x: Array, out: Array | None = None) -> Array:
        mine = np.empty(x.shape, x.dtype) if out is None else out
        done = loop(-(-x.size // _BLOCK), x.size, mine, x, x.size)
        return mine if done else plain(x, out)

    return run
