"""The factorisation that the array API lacks, LU, and Cholesky's gradient: small ones as loops."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, sqrt
from typing import Final

import numpy as np

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.blas import solve_triangle
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.namespace import namespace
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}
# Below this width, columns are eliminated one by one; above, blocks through matrix products.
_BLOCK = 16


# ---------------------------------------------------------------- LU
def _small_lu(
    begin: int, end: int, a: Array, order: Array, singular: Array, n: int
) -> None:  # fmt: skip
    """A turn is a matrix, factored in place; NaN is the largest pivot, as it is NumPy's."""
    for m in range(begin, end):
        first, bad = m * n * n, False
        for i in range(n):
            order[m * n + i] = i
        for k in range(n):
            row, pivot = first + k * n, k
            best = abs(a[row + k])
            for i in range(k + 1, n):
                size = abs(a[first + i * n + k])
                if size > best or (isnan(size) and not isnan(best)):
                    best = size
                    pivot = i
            if pivot != k:
                other = first + pivot * n
                for c in range(n):
                    a[row + c], a[other + c] = a[other + c], a[row + c]
                up, down = m * n + k, m * n + pivot
                order[up], order[down] = order[down], order[up]
            divisor = a[row + k]
            bad = bad or divisor == 0
            for i in range(k + 1, n):
                under = first + i * n
                factor = a[under + k] / divisor
                a[under + k] = factor
                for c in range(k + 1, n):
                    a[under + c] = a[under + c] - factor * a[row + c]
        singular[m] = bad


_SMALL_LU: Final = Looped(_small_lu, fixed=("n",))


def _factored(a: Array) -> Array:
    """Factors a batch of square matrices in place; returns the row order of each."""
    count, n = a.shape[:2]
    order, singular = np.empty((count, n), np.int64), np.empty(count, np.bool_)
    if n > _BLOCK or not _SMALL_LU(count, count * n * n * n / 3, a, order, singular, n):
        return _factor(a)
    if singular.any():
        raise checks.matrix_failure("inverse")
    return order


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
        order = _factored(packed)
        return packed.reshape(x.shape), order.reshape(x.shape[:-1]).astype(index)

    return run


# ---------------------------------------------------------------- Cholesky
def _small_cholesky(begin: int, end: int, out: Array, singular: Array, a: Array, n: int) -> None:
    """A turn is a matrix, of which the lower triangle counts."""
    for m in range(begin, end):
        first, bad = m * n * n, False
        for j in range(n):
            row = first + j * n
            total = a[row + j]
            for k in range(j):
                total -= out[row + k] * out[row + k]
            bad = bad or not total > 0
            root = sqrt(total)
            out[row + j] = root
            for c in range(j + 1, n):
                out[row + c] = 0
            for i in range(j + 1, n):
                under = first + i * n
                value = a[under + j]
                for k in range(j):
                    value -= out[under + k] * out[row + k]
                out[under + j] = value / root
        singular[m] = bad


_SMALL_CHOLESKY: Final = Looped(_small_cholesky, fixed=("n",))


@table.binder("Cholesky", T={dtypes.float32, dtypes.float64})
def _cholesky(sig: NodeSig) -> Callable[[Array], Array]:
    plain: Callable[[Array], Array] = portable_kernel(sig)

    def run(x: Array) -> Array:
        checks.check_square(x)
        n = x.shape[-1]
        if not x.size or n > _BLOCK:
            return plain(x)
        count, out = x.size // (n * n), np.empty(x.shape, x.dtype)
        singular = np.empty(count, np.bool_)
        if not _SMALL_CHOLESKY(count, x.size * n / 3, out, singular, x, n):
            return plain(x)
        if singular.any():
            raise checks.matrix_failure("cholesky")
        return out

    return run


# ---------------------------------------------------------------- the gradient of Cholesky
_LARGE = 64
"""Columns of a block, and of a matrix that is one."""


def _back(begin: int, end: int, out: Array, lower: Array, n: int) -> None:
    """A turn is a matrix: the factorisation backwards, row by row (arXiv:1602.07527).

    In the lower triangle of `out` is the factor's gradient, and then that of the matrix.
    """
    for m in range(begin, end):
        first = m * n * n
        for j in range(n - 1, -1, -1):
            row = first + j * n
            diagonal = lower[row + j]
            on_diagonal = out[row + j]
            for i in range(j + 1, n):
                below = first + i * n
                on_diagonal -= lower[below + j] * out[below + j] / diagonal
                out[below + j] = out[below + j] / diagonal
            on_diagonal = on_diagonal / diagonal
            for k in range(j):
                out[row + k] = out[row + k] - on_diagonal * lower[row + k]
            for i in range(j + 1, n):
                below = first + i * n
                change = out[below + j]
                for k in range(j):
                    out[row + k] = out[row + k] - change * lower[below + k]
                    out[below + k] = out[below + k] - change * lower[row + k]
            out[row + j] = on_diagonal / 2
        # What is below the diagonal lies in both triangles.
        for j in range(n):
            for k in range(j):
                half = out[first + j * n + k] / 2
                out[first + j * n + k] = half
                out[first + k * n + j] = half


_BACK: Final = Looped(_back)


def _in_blocks(out: Array, lower: Array) -> None:
    """The same of one large matrix, its diagonal by blocks, the rest by products."""
    n = len(out)
    for end in range(n, 0, -_LARGE):
        begin = max(end - _LARGE, 0)
        own, before = slice(begin, end), slice(0, begin)
        factor, below = lower[own, own], out[end:, own]
        if len(below):
            below[...] = solve_triangle(factor, below.T, lower=True, adjoint=True).T
            out[end:, before] -= namespace.matmul(below, lower[own, before])
            out[own, own] -= np.tril(namespace.matmul(below.T, lower[end:, own]))
            out[own, before] -= namespace.matmul(below.T, lower[end:, before])
        block = np.ascontiguousarray(out[own, own])
        _gradients(block[None], np.ascontiguousarray(factor)[None])
        if begin:
            out[own, before] -= namespace.matmul(2 * block, lower[own, before])
        out[own, own] = 2 * block - np.diag(np.diagonal(block))
    half = np.tril(out) / 2
    out[...] = half + half.T


def _gradients(out: Array, lower: Array) -> bool:
    """Makes gradients of factors those of their matrices; whether there is code for it."""
    n = lower.shape[-1]
    return bool(_BACK(len(lower), lower.size * n / 3, out, lower, n))


@table.binder("CholeskyGrad", T={dtypes.float32, dtypes.float64})
def _cholesky_grad(sig: NodeSig) -> Callable[[Array, Array], Array]:
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(lower: Array, grad: Array) -> Array:
        if lower.ndim < 2 or lower.shape != grad.shape:
            return plain(lower, grad)
        checks.check_square(lower)
        n = lower.shape[-1]
        if not lower.size or not np.diagonal(lower, axis1=-2, axis2=-1).all():
            return plain(lower, grad)
        out, factors = np.tril(grad).reshape(-1, n, n), lower.reshape(-1, n, n)
        # One that is small first, which says whether there is code.
        if not _gradients(*(a[:1, :1, :1].copy() for a in (out, factors))):
            return plain(lower, grad)
        if n <= _LARGE:
            _gradients(out, factors)
        else:
            for matrix, factor in zip(out, factors, strict=True):
                _in_blocks(matrix, factor)
        return out.reshape(lower.shape)

    return run
