"""Factorizations of matrices, batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.dense import Dense
from opdock_ckernels.pointwise import formula
from opdock_ckernels.product import Factor, multiply
from opdock_ckernels.protocols import Array
from opdock_ckernels.spectral import eigen, singular
from opdock_ckernels.strided import place, strides_of, transposed, zeros

__all__ = ["table"]

table = KernelTable()
_TYPES = frozenset({dtypes.float32, dtypes.float64})


def _empty_like(device: Any, x: Array) -> Array:
    out: Array = device.allocate(x.shape, x.dtype)
    return out


@table.binder("Cholesky", T=_TYPES)
def cholesky(sig: NodeSig) -> Callable[[Array], Array]:
    """The lower factors."""
    device, dense = sig.device, Dense(sig.device, sig.in_dtypes[0].np)

    def run(x: Array) -> Array:
        checks.check_square(x)
        if not x.size:
            return _empty_like(device, x)
        flag = device.flag()
        out = dense.cholesky(x, flag)
        if device.read_int(flag):
            raise checks.matrix_failure("cholesky")
        return out

    return run


@table.binder("Lu", T=_TYPES)
def lu(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """Both triangles in one matrix, and the order of the rows."""
    device, dense = sig.device, Dense(sig.device, sig.in_dtypes[0].np)
    index = sig.out_dtypes[1]
    cast = formula(device, f"cast(x, {index.name})", {"x": dtypes.int32}, index)

    def run(x: Array) -> tuple[Array, Array]:
        checks.check_square(x)
        if not x.size:
            return _empty_like(device, x), device.allocate(x.shape[:-1], index.np)
        flag = device.flag()
        packed, order = dense.lu(x, flag)
        if device.read_int(flag):
            raise checks.matrix_failure("inverse")
        return packed, order if index is dtypes.int32 else cast(order)

    return run


@table.binder("Qr", T=_TYPES)
def qr(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """Orthonormal columns and an upper triangle."""
    device, full = sig.device, bool(sig.attrs["full_matrices"])
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(x: Array) -> tuple[Array, Array]:
        if x.size:
            return dense.qr(x, full)
        *batch, m, n = x.shape
        p = m if full else min(m, n)
        return dense.identity((*batch, m, p)), device.allocate((*batch, p, n), x.dtype)

    return run


@table.binder("SelfAdjointEigV2", T=_TYPES)
def self_adjoint_eig_v2(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """Eigenvalues from small to large, and eigenvectors."""
    device, wanted = sig.device, bool(sig.attrs["compute_v"])
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(x: Array) -> tuple[Array, Array]:
        checks.check_square(x)
        if x.size:
            values, vectors = eigen(dense, x, wanted)
        else:
            values, vectors = device.allocate(x.shape[:-1], x.dtype), _empty_like(device, x)
        return values, vectors if wanted else device.allocate((0,), x.dtype)

    return run


@table.binder("SelfAdjointEig", T=_TYPES)
def self_adjoint_eig(sig: NodeSig) -> Callable[[Array], Array]:
    """The old form: a row of eigenvalues above the eigenvectors."""
    device = sig.device
    dense = Dense(device, sig.in_dtypes[0].np)

    def run(x: Array) -> Array:
        checks.check_square(x)
        n = x.shape[-1]
        out: Array = device.allocate((*x.shape[:-2], n + 1, n), x.dtype)
        if not x.size:
            return out
        values, vectors = eigen(dense, x, wanted=True)
        steps = strides_of(out.shape)
        place(device, values, out, [*steps[:-2], 1])
        place(device, vectors, out, steps, n)
        return out

    return run


@table.binder("Svd", T=_TYPES)
def svd(sig: NodeSig) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Singular values from large to small, and vectors; v is not transposed."""
    device, wanted = sig.device, bool(sig.attrs["compute_uv"])
    full = bool(sig.attrs["full_matrices"])
    dense = Dense(device, sig.in_dtypes[0].np)

    def empty(x: Array) -> tuple[Array, Array, Array]:
        *batch, m, n = x.shape
        p = min(m, n)
        u, v = ((*batch, k, k if full else p) for k in (m, n))
        return device.allocate((*batch, p), x.dtype), dense.identity(u), dense.identity(v)

    def run(x: Array) -> tuple[Array, Array, Array]:
        s, u, v = singular(dense, x, wanted, full) if x.size else empty(x)
        if wanted:
            return s, u, v
        nothing: Array = device.allocate((0,), x.dtype)
        return s, nothing, nothing

    return run


@table.binder("CholeskyGrad", T=_TYPES)
def cholesky_grad(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The gradient of a Cholesky factorization."""
    device, dtype = sig.device, sig.in_dtypes[0]
    dense = Dense(device, dtype.np)
    mean = formula(device, "(x + y) / 2", {"x": dtype, "y": dtype}, dtype)

    def product(a: Array, b: Array, turned: bool = False) -> Array:
        out: Array = device.allocate(a.shape, a.dtype)
        n = a.shape[-1]
        count = a.size // (n * n)
        multiply(device, Factor(a, count, (n, n), turned), Factor(b, count, (n, n)), out)
        return out

    def run(lower: Array, grad: Array) -> Array:
        checks.check_square(lower)
        if not lower.size:
            return zeros(device, lower.shape, lower.dtype)
        factor = dense.lower(lower)
        # The diagonal counts half, as it lies in both triangles.
        middle = dense.lower(product(factor, dense.lower(grad), turned=True), 0.5)
        inverted = dense.identity(lower.shape)
        dense.substitute(factor, inverted, device.flag(), lower=True)
        out = product(product(inverted, middle, turned=True), inverted)
        result: Array = mean(out, transposed(device, out))
        return result

    return run
