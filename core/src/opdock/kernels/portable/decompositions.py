"""Portable kernels of the matrix factorisations: the array API's linalg extension."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from opdock.dtypes import COMPLEX, DType, float32, float64
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.signature import NodeSig

TYPES: frozenset[DType] = COMPLEX | {float32, float64}


@contextlib.contextmanager
def numeric_failure(message: str) -> Iterator[None]:
    """Turns whatever a namespace raises for a singular or indefinite matrix into TF's error."""
    try:
        yield
    except Exception as e:
        # The standard names no class, but every library calls it LinAlgError.
        if type(e).__name__.endswith("LinAlgError"):
            raise invalid(message) from None
        raise


def check_square(x: Any) -> None:
    """Raises TF's error unless `x` holds square matrices."""
    if len(x.shape) < 2:
        raise invalid(f"Input tensor 0 must have rank >= 2, got {len(x.shape)}")
    if x.shape[-1] != x.shape[-2]:
        raise invalid(f"Input matrices must be squares, got shape {dims(x.shape)}.")


def is_empty(x: Any) -> bool:
    """Whether there is no matrix, or none with elements: libraries differ about those."""
    return 0 in tuple(x.shape)


@portable("Cholesky", T=TYPES)
def cholesky(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The lower factor."""

    def run(x: Any) -> Any:
        check_square(x)
        if is_empty(x):
            return xp.zeros_like(x)
        with numeric_failure(
            "Cholesky decomposition was not successful. The input might not be valid."
        ):
            return xp.linalg.cholesky(x)

    return run


@portable("Qr", T=TYPES)
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


@portable("Svd", T=TYPES)
def svd(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Singular values and vectors; v is not transposed."""
    vectors, full = sig.attrs["compute_uv"], sig.attrs["full_matrices"]

    def values(x: Any) -> Any:
        p = min(x.shape[-2:])
        if is_empty(x):
            s = xp.zeros((*x.shape[:-2], p), dtype=x.dtype, device=getattr(x, "device", None))
        else:
            s = xp.astype(xp.linalg.svdvals(x), x.dtype)
        nothing = xp.zeros((0,), dtype=x.dtype, device=getattr(x, "device", None))
        return s, nothing, xp.asarray(nothing, copy=True)

    def run(x: Any) -> Any:
        with numeric_failure("Singular value decomposition was not successful."):
            u, s, vh = xp.linalg.svd(x, full_matrices=full)
        v = xp.asarray(xp.conj(xp.matrix_transpose(vh)), copy=True)
        return xp.astype(s, x.dtype), u, v

    return run if vectors else values


_EIGEN = "Self-adjoint eigen decomposition was not successful. The input might not be valid."


@portable("SelfAdjointEigV2", T=TYPES)
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
        with numeric_failure(_EIGEN):
            if not vectors:
                values = xp.linalg.eigvalsh(x)
                return xp.astype(values, x.dtype), xp.zeros((0,), dtype=x.dtype, device=device)
            values, v = xp.linalg.eigh(x)
        return xp.astype(values, x.dtype), v

    return run


@portable("SelfAdjointEig", T={float32, float64})
def self_adjoint_eig(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The old form: a row of eigenvalues above the eigenvectors."""

    def run(x: Any) -> Any:
        check_square(x)
        with numeric_failure(_EIGEN):
            values, vectors = xp.linalg.eigh(x)
        return xp.concat([xp.expand_dims(values, axis=-2), vectors], axis=-2)

    return run
