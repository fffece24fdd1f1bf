"""Matrices with three diagonals: products, and systems, as loops over their rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, dtypes
from opdock_cpu.jit.looped import Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_REALS = frozenset({dtypes.float32, dtypes.float64})
_SIDES: Final = 512
"""Right-hand sides of a turn."""


def _multiply(
    begin: int, end: int, out: Array, above: Array, main: Array, below: Array, x: Array, n: int,
    columns: int,
) -> None:  # fmt: skip
    """A turn is a row of a product."""
    for t in range(begin, end):
        i, row = t % n, t * columns
        for c in range(columns):
            out[row + c] = main[t] * x[row + c]
        if i < n - 1:
            for c in range(columns):
                out[row + c] = out[row + c] + above[t] * x[row + columns + c]
        if i > 0:
            for c in range(columns):
                out[row + c] = out[row + c] + below[t] * x[row - columns + c]


_MULTIPLY: Final = Looped(_multiply)


@table.binder("TridiagonalMatMul", T=COMPLEX | _REALS)
def _tridiagonal_matmul(sig: NodeSig) -> Callable[..., Array]:
    def run(superdiag: Array, maindiag: Array, subdiag: Array, rhs: Array) -> Array:
        given = superdiag, maindiag, subdiag
        if rhs.size and all(d.shape == (*rhs.shape[:-2], 1, rhs.shape[-2]) for d in given):
            out, columns = np.empty(rhs.shape, rhs.dtype), rhs.shape[-1]
            turns, numbers = rhs.size // columns, (rhs.shape[-2], columns)
            if _MULTIPLY(turns, 3.0 * rhs.size, out, *given, rhs, *numbers):
                return out
        out = maindiag[..., 0, :, None] * rhs
        out[..., :-1, :] += superdiag[..., 0, :-1, None] * rhs[..., 1:, :]
        out[..., 1:, :] += subdiag[..., 0, 1:, None] * rhs[..., :-1, :]
        return out

    return run


def _solve(
    begin: int, end: int, x: Array, upper: Array, singular: Array, diagonals: Array, rhs: Array,
    n: int, columns: int, blocks: int, pivoting: int,
) -> None:  # fmt: skip
    """A turn is a block of a system's right-hand sides, whose solutions are in `x`.

    `upper` is zero before, and has for each row the pivot and the two elements right of it after.
    """
    for t in range(begin, end):
        d, u, r = 3 * n * (t // blocks), 3 * n * t, n * columns * (t // blocks)
        left, right = columns * (t % blocks) // blocks, columns * (t % blocks + 1) // blocks
        main, above, zero = diagonals[d + n], diagonals[d], upper[u + 3 * n - 1]
        second = zero
        for c in range(left, right):
            x[r + c] = rhs[r + c]
        for i in range(1, n):
            below, next_main = diagonals[d + 2 * n + i], diagonals[d + n + i]
            next_above, next_second = zero, zero
            if i + 1 < n:
                next_above = diagonals[d + i]
            row, under = r + (i - 1) * columns, r + i * columns
            changed = 1 if pivoting > 0 and abs(below) > abs(main) else 0
            if changed > 0:
                main, below = below, main
                above, next_main = next_main, above
                next_second, next_above = next_above, next_second
            upper[u + i - 1] = main
            upper[u + n + i - 1] = above
            upper[u + 2 * n + i - 1] = next_second
            if main == 0:
                singular[t] = 1
            factor = below / main
            if changed > 0:
                for c in range(left, right):
                    x[under + c] = x[row + c] - factor * rhs[under + c]
                    x[row + c] = rhs[under + c]
            else:
                for c in range(left, right):
                    x[under + c] = rhs[under + c] - factor * x[row + c]
            main = next_main - factor * above
            above = next_above - factor * next_second
        if main == 0:
            singular[t] = 1
        last = r + (n - 1) * columns
        for c in range(left, right):
            x[last + c] = x[last + c] / main
        for j in range(1, n):
            i = n - 1 - j
            row, under = r + i * columns, r + (i + 1) * columns
            main, above, second = upper[u + i], upper[u + n + i], upper[u + 2 * n + i]
            after = under
            if j > 1:
                after = under + columns
            for c in range(left, right):
                x[row + c] = (x[row + c] - above * x[under + c] - second * x[after + c]) / main


_SOLVE: Final = Looped(_solve)


@table.binder("TridiagonalSolve", T=_REALS)
def tridiagonal_solve(sig: NodeSig) -> Callable[[Array, Array], Any]:
    """The solutions; what does not fit, or has none, the portable kernel finds out."""
    plain: Callable[[Array, Array], Any] = portable_kernel(sig)
    pivoting = int(sig.attrs["partial_pivoting"])

    def run(diagonals: Array, rhs: Array) -> Any:
        shape = (*rhs.shape[:-2], 3, rhs.shape[-2]) if rhs.ndim > 1 else ()
        if diagonals.shape == shape and rhs.size:
            blocks = -(-rhs.shape[-1] // _SIDES)
            turns = math.prod(shape[:-2]) * blocks
            x, upper = np.empty(rhs.shape, rhs.dtype), np.zeros((turns, *shape[-2:]), rhs.dtype)
            singular = np.zeros(turns, np.uint8)
            numbers = rhs.shape[-2], rhs.shape[-1], blocks, pivoting
            ran = _SOLVE(turns, 3.0 * rhs.size, x, upper, singular, diagonals, rhs, *numbers)
            if ran and not singular.any():
                return x
        return plain(diagonals, rhs)

    return run
