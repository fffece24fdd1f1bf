"""The factorisation that the array API lacks, LU, and Cholesky's gradient by substitution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.blas import solve_triangle
from opdock_cpu.namespace import namespace
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}
# Below this width, columns are eliminated one by one; above, blocks through matrix products.
_BLOCK = 16


# ---------------------------------------------------------------- LU
def _exchange(a: Array, order: Array) -> Array:
    return np.take_along_axis(a, order[:, :, None], 1)


def _factor(a: Array) -> Array:
    """Factors a batch of tall matrices in place; returns the row order of each."""
    columns = a.shape[-1]
    if columns <= _BLOCK:
        return _factor_columns(a)
    half = columns // 2
    left, right = a[:, :, :half], a[:, :, half:]
    order = _factor(left)
    right[:] = _exchange(right, order)
    upper, lower = right[:, :half], right[:, half:]
    upper[:] = _solve_unit_lower(left[:, :half], upper)
    lower -= left[:, half:] @ upper
    below = _factor(lower)
    left[:, half:] = _exchange(left[:, half:], below)
    rest = np.take_along_axis(order[:, half:], below, 1)
    return np.concatenate([order[:, :half], rest], 1)


def _factor_columns(a: Array) -> Array:
    batch, rows, columns = a.shape
    every = np.arange(batch)
    order = np.tile(np.arange(rows), (batch, 1))
    for k in range(min(rows, columns)):
        pivot = k + np.argmax(np.abs(a[:, k:, k]), 1)
        for values in (a, order):
            values[every, k], values[every, pivot] = (
                values[every, pivot].copy(),
                values[every, k].copy(),
            )
        divisor = a[:, k, k]
        if np.any(divisor == 0):
            raise checks.matrix_failure("inverse")
        a[:, k + 1 :, k] /= divisor[:, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, None, k, k + 1 :]
    return order


def _solve_unit_lower(lower: Array, rhs: Array) -> Array:
    """Forward substitution by halves; the diagonal counts as ones."""
    n = lower.shape[-1]
    if n <= _BLOCK:
        out = rhs.copy()
        for k in range(1, n):
            out[:, k] -= np.einsum("bj,bjc->bc", lower[:, k, :k], out[:, :k])
        return out
    half = n // 2
    top = _solve_unit_lower(lower[:, :half, :half], rhs[:, :half])
    rest = rhs[:, half:] - lower[:, half:, :half] @ top
    return np.concatenate([top, _solve_unit_lower(lower[:, half:, half:], rest)], 1)


@table.binder("Lu", T=_TYPES)
def _lu(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    index = sig.out_dtypes[1].np

    def run(x: Array) -> tuple[Array, Array]:
        checks.check_square(x)
        if not x.size:
            return x.copy(), np.zeros(x.shape[:-1], index)
        packed = np.array(x, order="C").reshape(-1, *x.shape[-2:])
        order = _factor(packed)
        return packed.reshape(x.shape), order.reshape(x.shape[:-1]).astype(index)

    return run


# ---------------------------------------------------------------- the gradient of Cholesky
_LARGE = 48
"""Columns from which substitution pays for calls for each matrix."""


@table.binder("CholeskyGrad", T={dtypes.float32, dtypes.float64})
def _cholesky_grad(sig: NodeSig) -> Callable[[Array, Array], Array]:
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(lower: Array, grad: Array) -> Array:
        if lower.ndim < 2 or lower.shape[-1] < _LARGE or lower.shape != grad.shape:
            return plain(lower, grad)
        checks.check_square(lower)
        out = np.empty_like(lower)
        for where in np.ndindex(*lower.shape[:-2]):
            factor, diagonal = np.tril(lower[where]), np.diagonal(lower[where])
            if not diagonal.all():
                return plain(lower, grad)
            middle = np.tril(namespace.matmul(factor.T, np.tril(grad[where])))
            # The diagonal counts half, as it lies in both triangles.
            middle = (middle + np.tril(middle, -1)) / 2
            half = solve_triangle(factor, middle, lower=True, adjoint=True)
            whole = solve_triangle(factor, half.T, lower=True, adjoint=True)
            out[where] = (whole + whole.T) / 2
        return out

    return run
