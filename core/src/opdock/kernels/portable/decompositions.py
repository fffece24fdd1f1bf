"""Portable kernels of the matrix factorisations: the array API's linalg extension, and LU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from opdock import errors
from opdock.dtypes import COMPLEX, DType, float32, float64
from opdock.kernels.array_api import (
    dims,
    fails,
    index_type,
    invalid,
    put,
)
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

TYPES: frozenset[DType] = COMPLEX | {float32, float64}


_FAILURES: Final = {
    "cholesky": "Cholesky decomposition was not successful. The input might not be valid.",
    "eigenvalues": (
        "Self-adjoint eigen decomposition was not successful. The input might not be valid."
    ),
    "inverse": "Input is not invertible.",
    "least squares": (
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide "
        "a larger l2_regularizer > 0."
    ),
    "singular values": "Singular value decomposition was not successful.",
    "solve": "Input matrix is not invertible.",
}


@contextlib.contextmanager
def numeric_failure(failure: str) -> Iterator[None]:
    """Turns whatever a namespace raises for a singular or indefinite matrix into TF's error.

    Args:
        failure: see `matrix_failure`.
    """
    try:
        yield
    except Exception as e:
        if _gave_up(e):
            raise matrix_failure(failure) from None
        raise


def _gave_up(error: Exception) -> bool:
    """Whether a namespace found no answer; the standard names no class for that."""
    return type(error).__name__.endswith("LinAlgError")


def matrix_failure(what: str) -> errors.InvalidArgumentError:
    """The error of a matrix with which something cannot be done.

    Args:
        what: a key of `_FAILURES`.
    """
    return invalid(_FAILURES[what])


def check_square(x: Any) -> None:
    """Raises TF's error unless `x` holds square matrices."""
    if len(x.shape) < 2:
        raise invalid(f"Input tensor 0 must have rank >= 2, got {len(x.shape)}")
    if x.shape[-1] != x.shape[-2]:
        raise invalid(f"Input matrices must be squares, got shape {dims(x.shape)}.")


def is_empty(x: Any) -> bool:
    """Whether there is no matrix, or none with elements: libraries differ about those."""
    return 0 in tuple(x.shape)


@portable("Cholesky", T=TYPES, extension="linalg")
def cholesky(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The lower factor."""

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            return xp.zeros_like(x)
        with numeric_failure("cholesky"):
            return xp.linalg.cholesky(x)

    return run


@portable("Qr", T=TYPES, extension="linalg")
def qr(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Orthonormal columns and an upper triangle."""
    mode = "complete" if sig.attrs["full_matrices"] else "reduced"
    full = sig.attrs["full_matrices"]

    def run(x: Any) -> Any:
        if is_empty(x):
            *batch, m, n = x.shape
            p = m if full else min(m, n)
            q = xp.zeros((*batch, m, p), dtype=x.dtype, device=getattr(x, "device", None))
            r = xp.zeros((*batch, p, n), dtype=x.dtype, device=getattr(x, "device", None))
            return q + xp.eye(m, p, dtype=x.dtype) if p and m else q, r
        q, r = xp.linalg.qr(x, mode=mode)
        return q, r

    return run


@portable("Svd", T=TYPES, extension="linalg")
def svd(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Singular values and vectors; v is not transposed. What is not finite has nan for both."""
    vectors, full = sig.attrs["compute_uv"], sig.attrs["full_matrices"]

    def values(x: Any) -> Any:
        device = getattr(x, "device", None)
        if is_empty(x):
            s = xp.zeros((*x.shape[:-2], min(x.shape[-2:])), dtype=x.dtype, device=device)
        else:
            s = xp.astype(xp.linalg.svdvals(x), x.dtype)
        nothing = xp.zeros((0,), dtype=x.dtype, device=device)
        return s, nothing, xp.asarray(nothing, copy=True)

    def whole(x: Any) -> Any:
        u, s, vh = xp.linalg.svd(x, full_matrices=full)
        v = xp.asarray(xp.conj(xp.matrix_transpose(vh)), copy=True)
        return xp.astype(s, x.dtype), u, v

    parts = whole if vectors else values

    def run(x: Any) -> Any:
        with numeric_failure("singular values"):
            try:
                return parts(x)
            except Exception as e:
                finite = xp.all(xp.isfinite(x), axis=(-2, -1), keepdims=True)
                if not _gave_up(e) or xp.all(finite):
                    raise
            nan = xp.asarray(xp.nan, dtype=x.dtype)
            s, u, v = parts(xp.where(finite, x, xp.zeros_like(x)))
            s = xp.where(finite[..., 0], s, nan)
            return (s, *(xp.where(finite, t, nan) for t in (u, v))) if vectors else (s, u, v)

    return run


@portable("SelfAdjointEigV2", T=TYPES, extension="linalg")
def self_adjoint_eig_v2(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Eigenvalues from small to large, and eigenvectors."""
    vectors = sig.attrs["compute_v"]

    def run(x: Any) -> Any:
        check_square(x)
        device = getattr(x, "device", None)
        if is_empty(x):
            values = xp.zeros(tuple(x.shape[:-1]), dtype=x.dtype, device=device)
            v = xp.zeros_like(x) if vectors else xp.zeros((0,), dtype=x.dtype, device=device)
            return values, v
        with numeric_failure("eigenvalues"):
            if not vectors:
                values = xp.linalg.eigvalsh(x)
                return xp.astype(values, x.dtype), xp.zeros((0,), dtype=x.dtype, device=device)
            values, v = xp.linalg.eigh(x)
        return xp.astype(values, x.dtype), v

    return run


@portable("SelfAdjointEig", T={float32, float64}, extension="linalg")
def self_adjoint_eig(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The old form: a row of eigenvalues above the eigenvectors."""

    def run(x: Any) -> Any:
        check_square(x)
        with numeric_failure("eigenvalues"):
            values, vectors = xp.linalg.eigh(x)
        return xp.concat([xp.expand_dims(values, axis=-2), vectors], axis=-2)

    return run


# ---------------------------------------------------------------- LU
# Up to this width columns are eliminated one by one; above, blocks through matrix products.
_BLOCK = 16


@portable("Lu", T=TYPES, extension="linalg")
def lu(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Both triangles in one matrix, and the order of rows from partial pivoting."""
    index = getattr(xp, sig.out_dtypes[1].name)

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            device = getattr(x, "device", None)
            return xp.zeros_like(x), xp.zeros(tuple(x.shape[:-1]), dtype=index, device=device)
        packed, order = _factor(xp, xp.reshape(x, (-1, *x.shape[-2:])))
        if fails(xp, xp.any(xp.linalg.diagonal(packed) == 0)):
            raise matrix_failure("inverse")
        return xp.reshape(packed, x.shape), xp.astype(xp.reshape(order, x.shape[:-1]), index)

    return run


def _factor(xp: Any, a: Any) -> tuple[Any, Any]:
    """Factors a batch of square or tall matrices by halves; with the order of rows of each."""
    columns = a.shape[2]
    if columns <= _BLOCK:
        return _factor_columns(xp, a)
    half = columns // 2
    left, order = _factor(xp, a[:, :, :half])
    right = _in_order(xp, a[:, :, half:], order)
    top = _solve_unit_lower(xp, left[:, :half, :], right[:, :half, :])
    rest, below = _factor(xp, right[:, half:, :] - xp.matmul(left[:, half:, :], top))
    upper = xp.concat([left[:, :half, :], top], axis=2)
    lower = xp.concat([_in_order(xp, left[:, half:, :], below), rest], axis=2)
    order = xp.concat([order[:, :half], _in_order(xp, order[:, half:], below)], axis=1)
    return xp.concat([upper, lower], axis=1), order


def _in_order(xp: Any, x: Any, order: Any) -> Any:
    """Each entry of a batch with its rows in an order of its own."""
    batch, rows = order.shape
    starts = xp.arange(batch, dtype=index_type(xp), device=getattr(x, "device", None)) * rows
    place = xp.reshape(order + xp.expand_dims(starts, axis=1), (batch * rows,))
    return xp.reshape(xp.take(xp.reshape(x, (batch * rows, -1)), place, axis=0), x.shape)


def _factor_columns(xp: Any, a: Any) -> tuple[Any, Any]:
    batch, rows, columns = a.shape
    place = xp.arange(rows, dtype=index_type(xp), device=getattr(a, "device", None))
    order = xp.broadcast_to(place, (batch, rows))
    for k in range(columns):
        step = xp.argmax(xp.abs(a[:, k:, k]), axis=1, keepdims=True)
        moves = xp.astype(place == k, index_type(xp)) - xp.astype(place == k + step, index_type(xp))
        exchange = place + step * moves
        a, order = _in_order(xp, a, exchange), _in_order(xp, order, exchange)
        factors = a[:, k + 1 :, k : k + 1] / a[:, k : k + 1, k : k + 1]
        below, right = slice(k + 1, None), slice(k + 1, None)
        a = put(xp, a, (slice(None), below, slice(k, k + 1)), factors)
        rest = a[:, below, right] - factors * a[:, k : k + 1, right]
        a = put(xp, a, (slice(None), below, right), rest)
    return a, order


def _solve_unit_lower(xp: Any, lower: Any, rhs: Any) -> Any:
    """Forward substitution by halves; the diagonal counts as ones."""
    n = lower.shape[2]
    if n == 1:
        return rhs
    half = n // 2
    top = _solve_unit_lower(xp, lower[:, :half, :half], rhs[:, :half, :])
    rest = rhs[:, half:, :] - xp.matmul(lower[:, half:, :half], top)
    return xp.concat([top, _solve_unit_lower(xp, lower[:, half:, half:], rest)], axis=1)


@portable("CholeskyGrad", T=TYPES, extension="linalg")
def cholesky_grad(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The gradient of a Cholesky factorisation."""

    def run(lower: Any, grad: Any) -> Any:
        check_square(lower)
        if is_empty(lower):
            return xp.zeros_like(lower)
        lower, grad = xp.tril(lower), xp.tril(grad)
        middle = xp.tril(xp.matmul(xp.matrix_transpose(lower), grad))
        # The diagonal counts half, as it lies in both triangles.
        middle = (middle + xp.tril(middle, k=-1)) / 2
        inverted = xp.linalg.inv(lower)
        half = xp.matmul(xp.matrix_transpose(inverted), middle)
        out = xp.matmul(half, inverted)
        return (out + xp.matrix_transpose(out)) / 2

    return run
