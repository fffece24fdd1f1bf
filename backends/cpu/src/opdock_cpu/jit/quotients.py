"""Quotients of complex numbers, as loops over their parts.

In double precision squares of single precision's numbers neither overflow nor vanish, so one
division serves both parts and all numbers; NumPy takes care of that number by number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, double
from opdock_cpu.kernels import arithmetic
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_MANY: Final = 1 << 10
"""Elements from which the loop is quicker than NumPy."""
_STEPS: Final = 16
"""How much work an element is."""
_ONE: Final = np.array([1, 0], np.float32)


def _quotients(
    begin: int, end: int, out: Array, x: Array, y: Array, each_x: int, each_y: int, zeros: int
) -> None:
    """A turn is a number, of which the two parts lie side by side.

    With a step (`each_x`, `each_y`) of 0 there is one number for all. By 0 the parts are divided
    alone, as in C; with `zeros` there are zeros instead.
    """
    for i in range(begin, end):
        a, b = double(x[each_x * i]), double(x[each_x * i + 1])
        c, d = double(y[each_y * i]), double(y[each_y * i + 1])
        size = c * c + d * d
        inverse = 1.0 / size
        real, imag = (a * c + b * d) * inverse, (b * c - a * d) * inverse
        none = size == 0
        if zeros > 0:
            other, another = double(0), double(0)
        else:
            other, another = a / c, b / c
        out[2 * i] = other if none else real
        out[2 * i + 1] = another if none else imag


_QUOTIENTS: Final = Looped(_quotients, fixed=("each_x", "each_y", "zeros"))


def _when(sig: NodeSig) -> bool | str:
    return llvm.available() or llvm.why_not()


def _plain(sig: NodeSig) -> Callable[..., Any]:
    """NumPy's kernel, which takes a buffer behind its arguments."""
    for kernel in arithmetic.table:
        if kernel.op == sig.op and dtypes.complex64 in kernel.dtypes["T"] and kernel.bind:
            return kernel.bind(sig)
    return portable_kernel(sig, out=True)


def _parts(x: Any) -> tuple[Array, int]:
    """The parts of an array's numbers, and how far apart numbers are: 0 for a single one."""
    flat = np.ascontiguousarray(x).reshape(-1)
    return flat.view(np.float32), 2 if flat.size > 1 else 0


@table.binder(
    "Div", "DivNoNan", "Inv", "RealDiv", "Reciprocal", T={dtypes.complex64}, when=_when, out=True,
    priority=1,
)  # fmt: skip
def _bind(sig: NodeSig) -> Callable[..., Any]:
    plain, zeros, alone = _plain(sig), int(sig.op == "DivNoNan"), len(sig.in_dtypes) == 1

    def run(*args: Any) -> Any:
        *inputs, out = args
        try:
            shape = np.broadcast_shapes(*map(np.shape, inputs))
        except ValueError:
            return plain(*args)  # which says so
        count = math.prod(shape)
        if count < _MANY or any(np.size(x) not in (1, count) for x in inputs):
            return plain(*args)
        mine = np.empty(shape, np.complex64) if out is None else out
        (left, first), (right, second) = (_ONE, 0) if alone else _parts(inputs[0]), _parts(args[-2])
        parts = mine.reshape(-1).view(np.float32)
        if _QUOTIENTS(count, _STEPS * count, parts, left, right, first, second, zeros):
            return mine
        return plain(*args)

    return run
