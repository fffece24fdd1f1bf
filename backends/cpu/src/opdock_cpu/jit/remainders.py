"""Remainders of real numbers: loops that look first how large the quotients are.

As long as these are whole numbers that fit beside a factor into double precision, one division
says them all, in vectors. Otherwise each remainder is found by as many divisions as it takes. NumPy
calls C's function for each number, on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, double, lower
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_BLOCK: Final = 1 << 10
"""Elements of which no quotient is far, or which count as such all together."""
_FAR: Final = 2.0**28
"""Quotients whose product with a number of single precision is exact."""
_INFINITE: Final = math.inf
_NONE: Final = math.nan
_STEPS: Final = 8
"""How much work an element is."""


def _far(x: Array, y: Array, first: int, last: int, step: int) -> int:
    """How many quotients are far, or no numbers."""
    found = 0
    for i in range(first, last):
        limit = double(y[i * step])
        limit = abs(limit) * _FAR
        size = double(x[i])
        found += 0 if abs(size) < limit else 1
        found += 0 if limit < _INFINITE else 1
    return found


def _near(size: float, divisor: float) -> float:
    """What is left of a size, by one division; the quotient may be rounded up to a whole number."""
    whole = double(lower(size / divisor))
    rest = size - whole * divisor
    more = rest + divisor
    return more if rest < 0 else rest


def _exact(size: float, divisor: float) -> float:
    """What is left of a size, whatever the numbers are."""
    rest = size if size < _INFINITE else double(_NONE)
    rest = rest if divisor > 0 else double(_NONE)
    while rest >= divisor:
        part = divisor
        while rest >= part * _FAR:
            part = part * _FAR
        rest = _near(rest, part)
    return rest


def _signed(rest: float, x: float, y: float, floored: int) -> float:
    """The remainder of two numbers, from that of their sizes: with the sign of one of them."""
    less, none = -rest, x * 0.0
    value = less if x < 0 else rest
    if floored > 0:
        more, crossed, minus = value + y, value * y, double(-0.0)
        value = more if crossed < 0 else value
        none = minus if y < 0 else 0.0
    return none if rest == 0 else value


def _remainders(
    begin: int, end: int, out: Array, x: Array, y: Array, size: int, step: int, floored: int
) -> None:
    """A turn is a block. With a `step` of 0 there is one divisor for all."""
    for t in range(begin, end):
        first, last = t * _BLOCK, min(t * _BLOCK + _BLOCK, size)
        if _far(x, y, first, last, step) == 0:
            for i in range(first, last):
                a, b = double(x[i]), double(y[i * step])
                out[i] = _signed(_near(abs(a), abs(b)), a, b, floored)
        else:
            for i in range(first, last):
                a, b = double(x[i]), double(y[i * step])
                out[i] = _signed(_exact(abs(a), abs(b)), a, b, floored)


_REMAINDERS: Final = Looped(_remainders, fixed=("step", "floored"))


def _when(sig: NodeSig) -> bool | str:
    return llvm.available() or llvm.why_not()


@table.binder(
    "FloorMod", "Mod", "TruncateMod", T={dtypes.float16, dtypes.float32}, when=_when, out=True,
    priority=1,
)  # fmt: skip
def _bind(sig: NodeSig) -> Callable[..., Any]:
    plain, floored = portable_kernel(sig, out=True), int(sig.op == "FloorMod")

    def run(x: Any, y: Any, out: Array | None = None) -> Any:
        try:
            shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        except ValueError:
            return plain(x, y, out)  # which says so
        count, step = math.prod(shape), int(np.size(y) > 1)
        if count < _BLOCK:
            return plain(x, y, out)
        mine = np.empty(shape, x.dtype) if out is None else out
        left, right = np.broadcast_to(x, shape), np.broadcast_to(y, shape) if step else y
        turns = -(-count // _BLOCK)
        if _REMAINDERS(turns, _STEPS * count, mine, left, right, count, step, floored):
            return mine
        return plain(x, y, out)

    return run
