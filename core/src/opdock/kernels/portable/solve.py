"""Portable kernels of inverses, determinants and linear systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.decompositions import TYPES, check_square, is_empty, numeric_failure
from opdock.kernels.select.signature import NodeSig


def adjoint(xp: Any, x: Any) -> Any:
    """The conjugate transpose."""
    turned = xp.matrix_transpose(x)
    return xp.conj(turned) if xp.isdtype(x.dtype, "complex floating") else turned


@portable("MatrixDeterminant", T=TYPES, extension="linalg")
def determinant(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The determinants."""

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            return xp.ones(tuple(x.shape[:-2]), dtype=x.dtype)
        return xp.astype(xp.linalg.det(x), x.dtype)

    return run


@portable("LogMatrixDeterminant", T=TYPES, extension="linalg")
def log_determinant(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Signs and logarithms of magnitudes."""

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            shape = tuple(x.shape[:-2])
            return xp.ones(shape, dtype=x.dtype), xp.zeros(shape, dtype=x.dtype)
        sign, logarithm = xp.linalg.slogdet(x)
        return xp.astype(sign, x.dtype), xp.astype(logarithm, x.dtype)

    return run


@portable("MatrixInverse", T=TYPES, extension="linalg")
def inverse(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The inverses."""
    of_adjoint = sig.attrs["adjoint"]

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            return xp.zeros_like(x)
        with numeric_failure("inverse"):
            return xp.linalg.inv(adjoint(xp, x) if of_adjoint else x)

    return run


def check_batches(matrix: Any, rhs: Any) -> None:
    """Raises TF's error unless there are right-hand sides for each matrix."""
    if len(matrix.shape) < 2:
        raise invalid(f"Input tensor 0 must have rank >= 2, got {len(matrix.shape)}")
    if len(rhs.shape) != len(matrix.shape) or rhs.shape[:-2] != matrix.shape[:-2]:
        raise invalid(
            "All input tensors must have the same outer dimensions: "
            f"{dims(matrix.shape)} vs. {dims(rhs.shape)}"
        )


def check_solve(matrix: Any, rhs: Any, square: bool = True) -> None:
    """Raises TF's error unless the shapes of a system and its right-hand sides fit."""
    if square:
        check_square(matrix)
    check_batches(matrix, rhs)
    if matrix.shape[-2] != rhs.shape[-2]:
        raise invalid(
            f"Input matrix and rhs are incompatible: {dims(matrix.shape)} vs. {dims(rhs.shape)}"
        )


@portable("MatrixSolve", T=TYPES, extension="linalg")
def solve(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The solutions of general systems."""
    of_adjoint = sig.attrs["adjoint"]

    def run(matrix: Any, rhs: Any) -> Any:
        check_solve(matrix, rhs)
        if is_empty(matrix) or is_empty(rhs):
            return xp.zeros_like(rhs)
        with numeric_failure("solve"):
            return xp.linalg.solve(adjoint(xp, matrix) if of_adjoint else matrix, rhs)

    return run


@portable("MatrixTriangularSolve", T=TYPES, extension="linalg")
def triangular_solve(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The solutions of triangular systems, by the general solver on the triangle."""
    triangle = xp.tril if sig.attrs["lower"] else xp.triu
    of_adjoint = sig.attrs["adjoint"]

    def run(matrix: Any, rhs: Any) -> Any:
        check_solve(matrix, rhs)
        if is_empty(matrix) or is_empty(rhs):
            return xp.zeros_like(rhs)
        matrix = triangle(matrix)
        with numeric_failure("solve"):
            return xp.linalg.solve(adjoint(xp, matrix) if of_adjoint else matrix, rhs)

    return run


@portable(
    "MatrixSolveLs",
    T=TYPES,
    extension="linalg",
    host_inputs=("l2_regularizer",),
    when=lambda sig: bool(sig.attrs["fast"]) or "fast=False needs an orthogonal decomposition",
)
def least_squares(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Least squares by the normal equations."""

    def run(matrix: Any, rhs: Any, l2_regularizer: Any) -> Any:
        check_solve(matrix, rhs, square=False)
        m, n = matrix.shape[-2:]
        turned, strength = adjoint(xp, matrix), float(l2_regularizer)
        if is_empty(matrix) or is_empty(rhs):
            return xp.zeros((*matrix.shape[:-2], n, rhs.shape[-1]), dtype=rhs.dtype)
        gram = xp.matmul(turned, matrix) if m >= n else xp.matmul(matrix, turned)
        if strength:
            gram = gram + strength * xp.eye(min(m, n), dtype=gram.dtype)
        with numeric_failure("least squares"):
            if m >= n:
                return xp.linalg.solve(gram, xp.matmul(turned, rhs))
            return xp.matmul(turned, xp.linalg.solve(gram, rhs))

    return run
