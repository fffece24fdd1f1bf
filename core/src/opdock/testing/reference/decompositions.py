"""What the factorisations compute, one matrix at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _each(x: Array, fn: Callable[[Array], Any], *shapes: tuple[int, ...]) -> Any:
    """`fn` of every matrix of `x`; `shapes` are the results', needed for empty batches."""
    batch = x.shape[:-2]
    outs = [np.zeros(batch + shape, x.dtype) for shape in shapes]
    for where in np.ndindex(*batch):
        results = fn(x[where])
        for out, result in zip(outs, results if len(shapes) > 1 else (results,), strict=True):
            out[where] = result
    return tuple(outs) if len(shapes) > 1 else outs[0]


@reference("Cholesky")
def cholesky(attrs: Attrs, x: Array) -> Array:
    """The lower triangular L with L L^H = x, from x's lower triangle."""

    def factor(a: Array) -> Array:
        lower = np.zeros_like(a)
        for i in range(len(a)):
            for j in range(i + 1):
                rest = a[i, j] - np.sum(lower[i, :j] * np.conj(lower[j, :j]))
                lower[i, j] = np.sqrt(rest) if i == j else rest / lower[j, j]
        return lower

    return np.asarray(_each(x, factor, x.shape[-2:]))


@reference("CholeskyGrad")
def cholesky_grad(attrs: Attrs, lower: Array, grad: Array) -> Array:
    """The symmetrised gradient of the input, given L and the gradient of L (both lower)."""

    def backward(pair: Array) -> Array:
        factor, upstream = np.tril(pair[: pair.shape[1]]), np.tril(pair[pair.shape[1] :])
        middle = np.tril(factor.T @ upstream)
        middle -= 0.5 * np.diag(np.diag(middle))
        inverse = np.linalg.inv(factor)
        out = inverse.T @ middle @ inverse
        return np.asarray(0.5 * (out + out.T))

    pairs = np.concatenate([lower, grad], axis=-2)
    return np.asarray(_each(pairs, backward, lower.shape[-2:]))


@reference("Qr")
def qr(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    """Orthonormal columns q and upper triangular r with q r = x, by Householder reflections."""
    rows, columns = x.shape[-2:]
    width = rows if attrs["full_matrices"] else min(rows, columns)

    def factor(a: Array) -> tuple[Array, Array]:
        q, r = np.eye(rows, dtype=a.dtype), a.copy()
        for j in range(min(rows - 1 if a.dtype.kind != "c" else rows, columns)):
            v = r[j:, j].copy()
            length = np.linalg.norm(v)
            if length == 0 or (len(v) == 1 and v.imag == 0):
                continue
            # LAPACK's sign: the new diagonal element is real and opposes the old one.
            beta = -np.copysign(length, v[0].real)
            tau, v0 = (beta - v[0]) / beta, v[0] - beta
            v = v / v0
            v[0] = 1
            r[j:] -= np.conj(tau) * np.outer(v, np.conj(v) @ r[j:])
            q[:, j:] -= tau * np.outer(q[:, j:] @ v, np.conj(v))
        return q[:, :width], np.triu(r)[:width]

    return _each(x, factor, (rows, width), (width, columns))  # type: ignore[no-any-return]


@reference("Svd")
def svd(attrs: Attrs, x: Array) -> tuple[Array, Array, Array]:
    """Singular values, largest first, and their left and right vectors (as columns)."""
    nothing = np.zeros((0,), x.dtype)
    if not attrs["compute_uv"]:
        return np.asarray(np.linalg.svd(x, compute_uv=False)), nothing, nothing
    u, s, vh = np.linalg.svd(x, full_matrices=attrs["full_matrices"])
    return s, u, np.conj(np.swapaxes(vh, -1, -2))


@reference("SelfAdjointEigV2")
def self_adjoint_eig_v2(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    """Eigenvalues, smallest first, and eigenvectors of a self-adjoint matrix (lower triangle)."""
    if not attrs["compute_v"]:
        return np.asarray(np.linalg.eigvalsh(x)), np.zeros((0,), x.dtype)
    values, vectors = np.linalg.eigh(x)
    return values, vectors


@reference("SelfAdjointEig")
def self_adjoint_eig(attrs: Attrs, x: Array) -> Array:
    """The old form: a first row of eigenvalues above the eigenvectors."""
    values, vectors = np.linalg.eigh(x)
    return np.concatenate([values[..., None, :], vectors], axis=-2)


@reference("Lu")
def lu(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    """L (unit diagonal, below) and U (above) in one matrix, and the row order of the pivoting."""
    n = x.shape[-1]
    packed, order = np.array(x), np.zeros(x.shape[:-1], np.int64)
    for where in np.ndindex(*x.shape[:-2]):
        a, rows = packed[where], list(range(n))
        for k in range(n):
            pivot = k + int(np.argmax(np.abs(a[k:, k])))
            a[[k, pivot]] = a[[pivot, k]]
            rows[k], rows[pivot] = rows[pivot], rows[k]
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
                a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
        order[where] = rows
    return packed, order
