"""Matrices with three diagonals: products, and systems as one loop over their rows."""

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


@table.binder("TridiagonalMatMul", T=COMPLEX | _REALS)
def _tridiagonal_matmul(sig: NodeSig) -> Callable[..., Array]:
    def run(superdiag: Array, maindiag: Array, subdiag: Array, rhs: Array) -> Array:
        out = maindiag[..., 0, :, None] * rhs
        out[..., :-1, :] += superdiag[..., 0, :-1, None] * rhs[..., 1:, :]
        out[..., 1:, :] += subdiag[..., 0, 1:, None] * rhs[..., :-1, :]
        return out

    return run


def _solve(
    begin: int, end: int, x: Array, upper: Array, singular: Array, diagonals: Array,
    n: int, columns: int, pivoting: int,
) -> None:  # fmt: skip
    """A turn is a system: `x` has the right-hand sides, and then the solutions.

    `upper` is zero before, and has for each row the pivot and the two elements right of it after.
    """
    for b in range(begin, end):
        d, r = 3 * n * b, n * columns * b
        main, above, zero = diagonals[d + n], diagonals[d], upper[d + 3 * n - 1]
        second = zero
        for i in range(1, n):
            below, next_main = diagonals[d + 2 * n + i], diagonals[d + n + i]
            next_above, next_second = zero, zero
            if i + 1 < n:
                next_above = diagonals[d + i]
            row, under = r + (i - 1) * columns, r + i * columns
            if pivoting > 0 and abs(below) > abs(main):
                main, below = below, main
                above, next_main = next_main, above
                next_second, next_above = next_above, next_second
                for c in range(columns):
                    x[row + c], x[under + c] = x[under + c], x[row + c]
            upper[d + i - 1] = main
            upper[d + n + i - 1] = above
            upper[d + 2 * n + i - 1] = next_second
            if main == 0:
                singular[b] = 1
            factor = below / main
            for c in range(columns):
                x[under + c] = x[under + c] - factor * x[row + c]
            main = next_main - factor * above
            above = next_above - factor * next_second
        if main == 0:
            singular[b] = 1
        last = r + (n - 1) * columns
        for c in range(columns):
            x[last + c] = x[last + c] / main
        for j in range(1, n):
            i = n - 1 - j
            row, under = r + i * columns, r + (i + 1) * columns
            main, above, second = upper[d + i], upper[d + n + i], upper[d + 2 * n + i]
            after = under
            if j > 1:
                after = under + columns
            for c in range(columns):
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
            count = math.prod(shape[:-2])
            x, upper = np.array(rhs, order="C"), np.zeros(diagonals.shape, rhs.dtype)
            singular = np.zeros(count, np.uint8)
            numbers = rhs.shape[-2], rhs.shape[-1], pivoting
            ran = _SOLVE(count, 3.0 * rhs.size, x, upper, singular, diagonals, *numbers)
            if ran and not singular.any():
                return x
        return plain(diagonals, rhs)

    return run
