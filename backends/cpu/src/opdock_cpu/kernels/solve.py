"""Linear systems on NumPy: substitution by blocks, least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}
# Triangles up to this size go to LAPACK's general solver, which wastes little on them.
_BLOCK = 48


def _adjoint(x: Array) -> Array:
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def _substitute(triangle: Array, rhs: Array, lower: bool) -> Array:
    """Solves with triangular matrices: half, what it leaves of the rest, the other half."""
    n = triangle.shape[-1]
    if n <= _BLOCK:
        solved: Array = np.linalg.solve(np.tril(triangle) if lower else np.triu(triangle), rhs)
        return solved
    half = n // 2
    first, second = (slice(0, half), slice(half, n)) if lower else (slice(half, n), slice(0, half))
    out = np.empty_like(rhs)
    out[..., first, :] = _substitute(triangle[..., first, first], rhs[..., first, :], lower)
    rest = rhs[..., second, :] - triangle[..., second, first] @ out[..., first, :]
    out[..., second, :] = _substitute(triangle[..., second, second], rest, lower)
    return out


@table.binder("MatrixTriangularSolve", T=_TYPES)
def _triangular_solve(sig: NodeSig) -> Callable[[Array, Array], Array]:
    lower, of_adjoint = sig.attrs["lower"], sig.attrs["adjoint"]

    def run(matrix: Array, rhs: Array) -> Array:
        checks.check_solve(matrix, rhs)
        if not matrix.size or not rhs.size:
            return np.zeros_like(rhs)
        if np.any(np.diagonal(matrix, axis1=-2, axis2=-1) == 0):
            raise checks.invalid("Input matrix is not invertible.")
        if of_adjoint:
            return _substitute(_adjoint(matrix), rhs, not lower)
        return _substitute(matrix, rhs, lower)

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
