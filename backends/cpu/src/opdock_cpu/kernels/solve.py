"""Linear systems: many small ones as generated loops, substitution, least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.blas import solve_triangle
from opdock_cpu.jit.looped import Looped, double
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_REALS = frozenset({dtypes.float32, dtypes.float64})
_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}
# Triangles up to this size go to LAPACK's general solver, which wastes little on them.
_BLOCK = 48


_SMALL = 32
"""Columns up to which a matrix is eliminated by one loop, and LAPACK's calls cost more."""


# ---------------------------------------------------------------- many small matrices
def _eliminate(
    begin: int, end: int, rhs: Array, determinant: Array, a: Array, n: int, columns: int
) -> None:
    """A turn is a system: the matrix becomes an upper triangle, the right-hand sides solutions."""
    for b in range(begin, end):
        m, r = b * n * n, b * n * columns
        product = double(1)
        for k in range(n):
            best = k
            for i in range(k + 1, n):
                if abs(a[m + i * n + k]) > abs(a[m + best * n + k]):
                    best = i
            if best != k:
                product = -product
                up, down = m + k * n, m + best * n
                for c in range(n):
                    a[up + c], a[down + c] = a[down + c], a[up + c]
                up, down = r + k * columns, r + best * columns
                for c in range(columns):
                    rhs[up + c], rhs[down + c] = rhs[down + c], rhs[up + c]
            pivot = a[m + k * n + k]
            product *= pivot
            for i in range(k + 1, n):
                row, under = m + k * n, m + i * n
                factor = a[under + k] / pivot if pivot != 0 else pivot
                for c in range(k + 1, n):
                    a[under + c] = a[under + c] - factor * a[row + c]
                row, under = r + k * columns, r + i * columns
                for c in range(columns):
                    rhs[under + c] = rhs[under + c] - factor * rhs[row + c]
        determinant[b] = product
        for k in range(n - 1, -1, -1):
            row = r + k * columns
            for i in range(k + 1, n):
                factor, under = a[m + k * n + i], r + i * columns
                for c in range(columns):
                    rhs[row + c] = rhs[row + c] - factor * rhs[under + c]
            pivot = a[m + k * n + k]
            for c in range(columns):
                rhs[row + c] = rhs[row + c] / pivot


_ELIMINATE: Final = Looped(_eliminate)


def _eliminated(matrix: Array, rhs: Array | None) -> tuple[Array, Array] | None:
    """(solutions, determinants) of square systems; None where the loop does not serve.

    Args:
        matrix: [..., n, n].
        rhs: [..., n, m]; only the determinants are wanted without it.
    """
    n = matrix.shape[-1]
    count = math.prod(matrix.shape[:-2])
    if not 0 < n <= _SMALL or not count:
        return None
    wanted = np.empty((count, n, 0), matrix.dtype) if rhs is None else np.array(rhs, order="C")
    determinants = np.empty(matrix.shape[:-2])
    steps = count * n * n * (n / 3 + wanted.shape[-1])
    left = np.array(matrix, order="C")
    if not _ELIMINATE(count, steps, wanted, determinants, left, n, wanted.shape[-1]):
        return None
    return wanted, determinants


def _is_square(matrix: Array) -> bool:
    return matrix.ndim > 1 and matrix.shape[-1] == matrix.shape[-2]


@table.binder("MatrixDeterminant", T=_REALS)
def _determinant(sig: NodeSig) -> Callable[[Array], Array]:
    plain: Callable[..., Array] = portable_kernel(sig)
    dtype = sig.in_dtypes[0].np

    def run(matrix: Array) -> Array:
        found = _eliminated(matrix, None) if _is_square(matrix) else None
        return plain(matrix) if found is None else found[1].astype(dtype, copy=False)

    return run


@table.binder("MatrixInverse", T=_REALS)
def _inverse(sig: NodeSig) -> Callable[[Array], Array]:
    plain: Callable[..., Array] = portable_kernel(sig)
    of_adjoint = sig.attrs["adjoint"]

    def run(matrix: Array) -> Array:
        found = None
        if _is_square(matrix):
            wanted = np.broadcast_to(np.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
            found = _eliminated(_adjoint(matrix) if of_adjoint else matrix, wanted)
        if found is None:
            return plain(matrix)
        if not found[1].all():
            raise checks.matrix_failure("inverse")
        return found[0]

    return run


@table.binder("MatrixSolve", T=_REALS)
def _solve(sig: NodeSig) -> Callable[[Array, Array], Array]:
    plain: Callable[..., Array] = portable_kernel(sig)
    of_adjoint = sig.attrs["adjoint"]

    def run(matrix: Array, rhs: Array) -> Array:
        checks.check_solve(matrix, rhs)
        found = _eliminated(_adjoint(matrix) if of_adjoint else matrix, rhs) if rhs.size else None
        if found is None:
            return plain(matrix, rhs)
        if not found[1].all():
            raise checks.matrix_failure("solve")
        return found[0]

    return run


# ---------------------------------------------------------------- triangles
def _substituted(
    begin: int, end: int, rhs: Array, a: Array, n: int, columns: int, forward: int, turned: int
) -> None:
    """A turn is a system whose right-hand sides become solutions; `turned` is of transposes."""
    for b in range(begin, end):
        m, r = b * n * n, b * n * columns
        for s in range(n):
            k = s if forward > 0 else n - 1 - s
            row = r + k * columns
            first, last = k + 1, n
            if forward > 0:
                first, last = 0, k
            for i in range(first, last):
                factor = a[m + i * n + k] if turned > 0 else a[m + k * n + i]
                other = r + i * columns
                for c in range(columns):
                    rhs[row + c] = rhs[row + c] - factor * rhs[other + c]
            pivot = a[m + k * n + k]
            for c in range(columns):
                rhs[row + c] = rhs[row + c] / pivot


_SUBSTITUTED: Final = Looped(_substituted, fixed=("n", "forward", "turned"))


def _adjoint(x: Array) -> Array:
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def _substitute(triangle: Array, rhs: Array, lower: bool, adjoint: bool) -> Array:
    """Solves with triangular matrices, or their adjoints."""
    n, columns = triangle.shape[-1], rhs.shape[-1]
    if n <= _SMALL:
        count, out = math.prod(triangle.shape[:-2]), np.array(rhs, order="C")
        numbers = n, columns, int(lower != adjoint), int(adjoint)
        if _SUBSTITUTED(count, count * n * n * columns / 2, out, triangle, *numbers):
            return out
    if n <= _BLOCK:
        kept = np.tril(triangle) if lower else np.triu(triangle)
        solved: Array = np.linalg.solve(_adjoint(kept) if adjoint else kept, rhs)
        return solved
    out = np.empty_like(rhs)
    for where in np.ndindex(*triangle.shape[:-2]):
        out[where] = solve_triangle(triangle[where], rhs[where], lower, adjoint)
    return out


@table.binder("MatrixTriangularSolve", T=_TYPES)
def _triangular_solve(sig: NodeSig) -> Callable[[Array, Array], Array]:
    lower, of_adjoint = sig.attrs["lower"], sig.attrs["adjoint"]

    def run(matrix: Array, rhs: Array) -> Array:
        checks.check_solve(matrix, rhs)
        if not matrix.size or not rhs.size:
            return np.zeros_like(rhs)
        if np.any(np.diagonal(matrix, axis1=-2, axis2=-1) == 0):
            raise checks.matrix_failure("solve")
        return _substitute(matrix, rhs, lower, of_adjoint)

    return run


@table.binder(
    "MatrixSolveLs", T=_TYPES, host_inputs=("l2_regularizer",),
    when=lambda sig: not sig.attrs["fast"] or "fast=True solves the normal equations",
)  # fmt: skip
def _least_squares(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """Least squares of least norm, whatever the rank; the regulariser is ignored, as in TF."""

    def run(matrix: Array, rhs: Array, l2_regularizer: Array) -> Array:
        checks.check_solve(matrix, rhs, square=False)
        out = np.zeros((*matrix.shape[:-2], matrix.shape[-1], rhs.shape[-1]), rhs.dtype)
        for where in np.ndindex(*matrix.shape[:-2]):
            if matrix[where].size:
                out[where] = np.linalg.lstsq(matrix[where], rhs[where], rcond=None)[0]
        return out

    return run
