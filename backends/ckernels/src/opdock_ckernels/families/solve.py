"""Inverses, determinants and linear systems, batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.dense import Dense
from opdock_ckernels.pointwise import formula
from opdock_ckernels.product import Factor, multiply
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import transposed, zeros

__all__ = ["table"]

table = KernelTable()
_TYPES = frozenset({dtypes.float32, dtypes.float64})


def _checked(device: Any, flag: Array, result: Array, what: str) -> Array:
    if device.read_int(flag):
        raise checks.matrix_failure(what)
    return result


@table.binder("MatrixInverse", T=_TYPES)
def inverse(sig: NodeSig) -> Callable[[Array], Array]:
    """The inverses."""
    device, of_adjoint = sig.device, bool(sig.attrs["adjoint"])
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(x: Array) -> Array:
        checks.check_square(x)
        if not x.size:
            return zeros(device, x.shape, x.dtype)
        flag = device.flag()
        out = dense.solve(transposed(device, x) if of_adjoint else x, None, flag)
        return _checked(device, flag, out, "inverse")

    return run


@table.binder("MatrixSolve", T=_TYPES)
def solve(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The solutions of general systems."""
    device, of_adjoint = sig.device, bool(sig.attrs["adjoint"])
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(matrix: Array, rhs: Array) -> Array:
        checks.check_solve(matrix, rhs)
        if not matrix.size or not rhs.size:
            return zeros(device, rhs.shape, rhs.dtype)
        flag = device.flag()
        out = dense.solve(transposed(device, matrix) if of_adjoint else matrix, rhs, flag)
        return _checked(device, flag, out, "solve")

    return run


@table.binder("MatrixTriangularSolve", T=_TYPES)
def triangular_solve(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The solutions of triangular systems."""
    device, attrs = sig.device, sig.attrs
    lower, turned = bool(attrs["lower"]), bool(attrs["adjoint"])
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(matrix: Array, rhs: Array) -> Array:
        checks.check_solve(matrix, rhs)
        if not matrix.size or not rhs.size:
            return zeros(device, rhs.shape, rhs.dtype)
        flag, out = device.flag(), dense.copy(rhs)
        dense.substitute(matrix, out, flag, lower, turned=turned)
        return _checked(device, flag, out, "solve")

    return run


@table.binder("MatrixDeterminant", "LogMatrixDeterminant", T=_TYPES)
def determinant(sig: NodeSig) -> Callable[[Array], Any]:
    """The determinants, or their signs and the logarithms of their sizes."""
    device, logs = sig.device, sig.op == "LogMatrixDeterminant"
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(x: Array) -> Any:
        checks.check_square(x)
        sign, value = dense.determinant(x, logs)
        return (sign, value) if logs else value

    def checked(x: Array) -> Any:
        checks.check_square(x)
        if x.size:
            return run(x)
        one: Array = device.allocate(x.shape[:-2], x.dtype)
        ones = dense.identity((one.size, 1, 1)).reshape(*one.shape)
        return (ones, zeros(device, one.shape, x.dtype)) if logs else ones

    return checked


@table.binder(
    "MatrixSolveLs", T=_TYPES, host_inputs=("l2_regularizer",),
    when=lambda sig: bool(sig.attrs["fast"]) or "fast=False needs an orthogonal decomposition",
)  # fmt: skip
def least_squares(sig: NodeSig) -> Callable[[Array, Array, Any], Array]:
    """Least squares by the normal equations."""
    device, dtype = sig.device, sig.in_dtypes[0]
    dense = Dense(device, dtype.np)
    types = {"x": dtype, "y": dtype, "s": dtype}
    regularized = formula(device, "x + s * y", types, dtype)

    def run(matrix: Array, rhs: Array, l2_regularizer: Any) -> Array:
        checks.check_solve(matrix, rhs, square=False)
        *batch, m, n = matrix.shape
        k, count = rhs.shape[-1], matrix.size // max(m * n, 1)
        if not matrix.size or not rhs.size:
            return zeros(device, (*batch, n, k), rhs.dtype)
        small, tall = min(m, n), m >= n
        gram: Array = device.allocate((*batch, small, small), matrix.dtype)
        plain, turned = Factor(matrix, count, (m, n)), Factor(matrix, count, (m, n), True)
        multiply(device, turned if tall else plain, plain if tall else turned, gram)
        strength = float(l2_regularizer)
        if strength:
            scale = device.upload(np.asarray(strength, dtype.np))
            gram = regularized(gram, dense.identity(gram.shape), scale)
        flag = device.flag()
        out: Array = device.allocate((*batch, n, k), rhs.dtype)
        if tall:
            multiply(device, turned, Factor(rhs, count, (m, k)), out)
            out = dense.solve(gram, out, flag)
        else:
            part = dense.solve(gram, rhs, flag)
            multiply(device, turned, Factor(part, count, (m, k)), out)
        return _checked(device, flag, out, "least squares")

    return run
