"""What the solvers, inverses and determinants compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def _determinant(a: Array) -> Any:
    """By elimination with pivoting."""
    a, value = np.array(a), a.dtype.type(1)
    for k in range(len(a)):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        if a[pivot, k] == 0:
            return a.dtype.type(0)
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            value = -value
        value = value * a[k, k]
        for i in range(k + 1, len(a)):
            a[i] = a[i] - a[i, k] / a[k, k] * a[k]
    return value


@reference("MatrixDeterminant")
def matrix_determinant(attrs: Attrs, x: Array) -> Array:
    """The determinant of each matrix."""
    out = np.zeros(x.shape[:-2], x.dtype)
    for where in np.ndindex(*out.shape):
        out[where] = _determinant(x[where])
    return out


@reference("LogMatrixDeterminant")
def log_matrix_determinant(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    """The determinant's sign (or phase) and the logarithm of its magnitude."""
    value = matrix_determinant(attrs, x)
    magnitude = np.abs(value)
    with np.errstate(divide="ignore", invalid="ignore"):
        sign = np.where(magnitude == 0, 0, value / magnitude)
        return sign, np.log(magnitude).astype(x.dtype)


@reference("MatrixInverse")
def matrix_inverse(attrs: Attrs, x: Array) -> Array:
    """The inverse, of the adjoint if so asked."""
    return np.asarray(np.linalg.inv(_adjoint(x) if attrs["adjoint"] else x))


@reference("MatrixSolve")
def matrix_solve(attrs: Attrs, matrix: Array, rhs: Array) -> Array:
    """The y with matrix y = rhs (or adjoint(matrix) y = rhs)."""
    return np.asarray(np.linalg.solve(_adjoint(matrix) if attrs["adjoint"] else matrix, rhs))


@reference("MatrixTriangularSolve")
def matrix_triangular_solve(attrs: Attrs, matrix: Array, rhs: Array) -> Array:
    """As MatrixSolve; only one triangle of the matrix is read."""
    matrix = np.tril(matrix) if attrs["lower"] else np.triu(matrix)
    return np.asarray(np.linalg.solve(_adjoint(matrix) if attrs["adjoint"] else matrix, rhs))


@reference("MatrixSolveLs")
def matrix_solve_ls(attrs: Attrs, matrix: Array, rhs: Array, l2_regularizer: Array) -> Array:
    """Least squares (tall) or least norm (wide); the regulariser adds l2 * |y|^2."""
    rows, columns = matrix.shape[-2:]
    strength = float(l2_regularizer)
    adjoint = _adjoint(matrix)
    if rows >= columns:
        gram = adjoint @ matrix + strength * np.eye(columns)
        return np.asarray(np.linalg.solve(gram, adjoint @ rhs))
    gram = matrix @ adjoint + strength * np.eye(rows)
    return np.asarray(adjoint @ np.linalg.solve(gram, rhs))
