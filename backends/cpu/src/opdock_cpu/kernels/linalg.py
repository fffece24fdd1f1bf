"""Matrix products on NumPy, which hands them to BLAS; transposed factors are views there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.halves import converted, widened

__all__ = ["table"]

Array = npt.NDArray[Any]
Product = Callable[..., Array]

table = KernelTable()

_BLAS = COMPLEX | {dtypes.float32, dtypes.float64}
_HALVES = frozenset({dtypes.float16, dtypes.bfloat16})
_INTS = frozenset({dtypes.int32, dtypes.int64})
# Whole numbers below this are exact in float64, whatever the order in which they are added.
_EXACT = 2.0**53


def _known(sig: NodeSig) -> bool:
    """Whether the shapes were checked when the program was prepared."""
    return all(s is not None and None not in s for s in sig.in_shapes)


# ---------------------------------------------------------------- products by type
def _whole(product: Product) -> Product:
    """Products of integers through float64 where that is exact: NumPy has no BLAS for them."""

    def run(a: Array, b: Array) -> Array:
        if a.size * b.shape[-1] < 4096:
            return np.asarray(product(a, b))
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        bound = np.abs(wide_a).max(initial=0) * np.abs(wide_b).max(initial=0) * a.shape[-1]
        if bound >= _EXACT:
            return np.asarray(product(a, b))
        # Through int64, so that a result beyond int32 wraps around.
        return product(wide_a, wide_b).astype(np.int64).astype(a.dtype)

    return run


def _half(product: Product) -> Product:
    """Products of 16-bit floats, added up in 32 bits."""

    def run(a: Array, b: Array) -> Array:
        return converted(np.asarray(product(widened(a), widened(b))), a.dtype)

    return run


def _through(sig: NodeSig, product: Product) -> Product:
    return (_half if sig.in_dtypes[0] in _HALVES else _whole)(product)


# ---------------------------------------------------------------- kernels
@table.binder("MatMul", T=_BLAS, out=True)
def _matmul(sig: NodeSig) -> Product:
    ta, tb = sig.attrs["transpose_a"], sig.attrs["transpose_b"]
    if not _known(sig):

        def run(a: Array, b: Array, out: Array | None = None) -> Array:
            checks.check_matmul(a, b, ta, tb)
            return np.dot(a.T if ta else a, b.T if tb else b, out)

        return run
    if not ta and not tb:
        return np.dot
    if not ta:
        return lambda a, b, out=None: np.dot(a, b.T, out)
    if not tb:
        return lambda a, b, out=None: np.dot(a.T, b, out)
    return lambda a, b, out=None: np.dot(a.T, b.T, out)


@table.binder("MatMul", T=_HALVES | _INTS)
def _matmul_through(sig: NodeSig) -> Product:
    ta, tb = sig.attrs["transpose_a"], sig.attrs["transpose_b"]
    product = _through(sig, np.dot)

    def run(a: Array, b: Array) -> Array:
        checks.check_matmul(a, b, ta, tb)
        return product(a.T if ta else a, b.T if tb else b)

    return run


@table.binder("SparseMatMul", out=True)
def _sparse_matmul(sig: NodeSig) -> Product:
    ta, tb = sig.attrs["transpose_a"], sig.attrs["transpose_b"]

    def run(a: Array, b: Array, out: Array | None = None) -> Array:
        checks.check_matmul(a, b, ta, tb)
        a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
        return np.dot(a.T if ta else a, b.T if tb else b, out)

    return run


def _adjoint(is_complex: bool) -> Callable[[Array], Array]:
    if is_complex:
        return lambda x: np.conj(np.swapaxes(x, -1, -2))
    return lambda x: np.swapaxes(x, -1, -2)


_BATCHED = ("BatchMatMul", "BatchMatMulV2")


@table.binder(*_BATCHED, T=_BLAS, out=True)
def _batch_matmul(sig: NodeSig) -> Product:
    adj_x, adj_y = sig.attrs["adj_x"], sig.attrs["adj_y"]
    broadcast, known = sig.op == "BatchMatMulV2", _known(sig)
    adjoint = _adjoint(sig.in_dtypes[0].is_complex)
    if known and not adj_x and not adj_y:
        return np.matmul

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        if not known:
            checks.check_batch_matmul(x, y, adj_x, adj_y, broadcast)
        return np.matmul(adjoint(x) if adj_x else x, adjoint(y) if adj_y else y, out)

    return run


@table.binder(*_BATCHED, T=_HALVES | _INTS)
def _batch_matmul_through(sig: NodeSig) -> Product:
    adj_x, adj_y = sig.attrs["adj_x"], sig.attrs["adj_y"]
    broadcast, product = sig.op == "BatchMatMulV2", _through(sig, np.matmul)
    adjoint = _adjoint(is_complex=False)

    def run(x: Array, y: Array) -> Array:
        checks.check_batch_matmul(x, y, adj_x, adj_y, broadcast)
        return product(adjoint(x) if adj_x else x, adjoint(y) if adj_y else y)

    return run
