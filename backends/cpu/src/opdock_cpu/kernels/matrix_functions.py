"""The square root and the logarithm of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _product_root(a: Array) -> Array:
    """The principal square root by the Denman-Beavers iteration, scaled by determinants."""
    n = len(a)
    root, inverse = a, np.eye(n, dtype=a.dtype)
    for step in range(60):
        scale = 1.0
        if step < 8:
            logs = [np.linalg.slogdet(m)[1] for m in (root, inverse)]
            scale = math.exp(-sum(logs) / (2 * n))
        root, inverse, before = (
            0.5 * (scale * root + np.linalg.inv(inverse) / scale),
            0.5 * (scale * inverse + np.linalg.inv(root) / scale),
            root,
        )
        if np.abs(root - before).sum() <= 1e-14 * np.abs(root).sum():
            break
    return root


def _through_eigenvalues(a: Array, fn: Callable[[Array], Array]) -> Array | None:
    """`fn` of a matrix through its eigenvalues, or None when its eigenvectors are too alike."""
    values, vectors = np.linalg.eig(a.astype(np.complex128))
    if not np.linalg.cond(vectors) < 1e6:
        return None
    out: Array = np.linalg.solve(vectors.T, (vectors * fn(values)).T).T
    return out


def _root(a: Array) -> Array:
    out = _through_eigenvalues(a, np.sqrt)
    return _product_root(a.astype(np.complex128)) if out is None else out


def _logarithm(a: Array) -> Array:
    """Inverse scaling and squaring: roots until the matrix is near one, then a quadrature."""
    out = _through_eigenvalues(a, np.log)
    if out is not None:
        return out
    a, identity, roots = a.astype(np.complex128), np.eye(len(a)), 0
    while np.abs(a - identity).sum(0).max() > 0.25 and roots < 100:
        a, roots = _product_root(a), roots + 1
    points, weights = np.polynomial.legendre.leggauss(8)
    rest, total = a - identity, np.zeros_like(a)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        total += weight * np.linalg.solve(identity + point * rest, rest)
    return total * 2.0**roots


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "MatrixSquareRoot": _root,
    "MatrixLogarithm": _logarithm,
}


@table.binder(*_FUNCTIONS, T=_TYPES)
def _function(sig: NodeSig) -> Callable[[Array], Array]:
    fn, dtype = _FUNCTIONS[sig.op], sig.in_dtypes[0]

    def run(x: Array) -> Array:
        checks.check_square(x)
        out = np.empty_like(x)
        for where in np.ndindex(*x.shape[:-2]):
            if not x.shape[-1]:
                continue
            try:
                value = fn(_wide(x[where]))
            except np.linalg.LinAlgError:
                out[where] = np.nan
                continue
            if not dtype.is_complex and value.dtype.kind == "c":
                if np.abs(value.imag).max() > 1e-6 * max(np.abs(value).max(), 1e-30):
                    # Eigenvalues on the negative real axis: there is no real root.
                    value = np.full_like(value, np.nan)
                value = value.real
            out[where] = value
        return out

    return run
