"""The oracle for tridiagonal systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("TridiagonalSolve")
def tridiagonal_solve(attrs: Attrs, diagonals: Array, rhs: Array) -> Array:
    """Solves with the matrix of three diagonals (above, main, below; ends of the outer unused)."""
    upper, main, lower = (diagonals[..., i, :] for i in range(3))
    size = main.shape[-1]
    matrix = np.zeros((*main.shape, size), diagonals.dtype)
    for i in range(size):
        matrix[..., i, i] = main[..., i]
        if i + 1 < size:
            matrix[..., i, i + 1] = upper[..., i]
            matrix[..., i + 1, i] = lower[..., i + 1]
    return np.asarray(np.linalg.solve(matrix, rhs))


@reference("TridiagonalMatMul")
def tridiagonal_matmul(
    attrs: Attrs, superdiag: Array, maindiag: Array, subdiag: Array, rhs: Array
) -> Array:
    """The product of a matrix of three diagonals and `rhs`."""
    size = rhs.shape[-2]
    out = np.zeros_like(rhs)
    for i in range(size):
        out[..., i, :] = maindiag[..., 0, i, None] * rhs[..., i, :]
        if i + 1 < size:
            out[..., i, :] += superdiag[..., 0, i, None] * rhs[..., i + 1, :]
        if i > 0:
            out[..., i, :] += subdiag[..., 0, i, None] * rhs[..., i - 1, :]
    return out
