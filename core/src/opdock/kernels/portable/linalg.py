"""Portable kernels of the matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.dtypes import COMPLEX, FLOATS, DType, float32, int32, int64
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_TYPES: frozenset[DType] = FLOATS | COMPLEX | {int32, int64}

Run = Callable[[Any, Any], Any]


def check_matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> None:
    """Raises TF's error unless `a` and `b` are matrices that can be multiplied."""
    for i, x in enumerate((a, b)):
        if len(x.shape) != 2:
            raise invalid(f"In[{i}] is not a matrix. Instead it has shape {dims(x.shape)}")
    if a.shape[0 if transpose_a else 1] != b.shape[1 if transpose_b else 0]:
        raise invalid(f"Matrix size-incompatible: In[0]: {dims(a.shape)}, In[1]: {dims(b.shape)}")


def check_batch_matmul(x: Any, y: Any, adj_x: bool, adj_y: bool, broadcast: bool) -> None:
    """Raises TF's error unless the batches `x` and `y` of matrices can be multiplied."""
    if len(x.shape) == len(y.shape) == 2:
        return check_matmul(x, y, adj_x, adj_y)
    for i, v in enumerate((x, y)):
        if len(v.shape) < 2:
            raise invalid(f"In[{i}] ndims must be >= 2: {len(v.shape)}")
    if not broadcast and len(x.shape) != len(y.shape):
        raise invalid(f"In[0] and In[1] has different ndims: {dims(x.shape)} vs. {dims(y.shape)}")
    pairs = zip(reversed(x.shape[:-2]), reversed(y.shape[:-2]), strict=False)
    if any(m != n and (not broadcast or 1 not in (m, n)) for m, n in pairs):
        raise invalid(
            "In[0] and In[1] must have compatible batch dimensions: "
            f"{dims(x.shape)} vs. {dims(y.shape)}"
        )
    inner_x, inner_y = x.shape[-2 if adj_x else -1], y.shape[-1 if adj_y else -2]
    if inner_x != inner_y:
        raise invalid(
            f"In[0] mismatch In[1] shape: {inner_x} vs. {inner_y}: {dims(x.shape)} "
            f"{dims(y.shape)} {int(adj_x)} {int(adj_y)}"
        )
    return None


@portable("MatMul", T=_TYPES)
def matmul(xp: Any, sig: NodeSig) -> Run:
    """The product of two matrices; a transposed factor is a view."""
    ta, tb = sig.attrs["transpose_a"], sig.attrs["transpose_b"]

    def run(a: Any, b: Any) -> Any:
        check_matmul(a, b, ta, tb)
        a = xp.matrix_transpose(a) if ta else a
        return xp.matmul(a, xp.matrix_transpose(b) if tb else b)

    return run


@portable("SparseMatMul")
def sparse_matmul(xp: Any, sig: NodeSig) -> Run:
    """A dense product: what the hints would save differs from device to device."""
    ta, tb = sig.attrs["transpose_a"], sig.attrs["transpose_b"]
    widen = [dtype is not float32 for dtype in sig.in_dtypes]

    def run(a: Any, b: Any) -> Any:
        check_matmul(a, b, ta, tb)
        a = xp.astype(a, xp.float32) if widen[0] else a
        b = xp.astype(b, xp.float32) if widen[1] else b
        a = xp.matrix_transpose(a) if ta else a
        return xp.matmul(a, xp.matrix_transpose(b) if tb else b)

    return run


@portable("BatchMatMul", "BatchMatMulV2", T=_TYPES)
def batch_matmul(xp: Any, sig: NodeSig) -> Run:
    """Products of batches of matrices."""
    adj_x, adj_y = sig.attrs["adj_x"], sig.attrs["adj_y"]
    broadcast = sig.op == "BatchMatMulV2"
    is_complex = sig.in_dtypes[0].is_complex

    def adjoint(x: Any) -> Any:
        turned = xp.matrix_transpose(x)
        return xp.conj(turned) if is_complex else turned

    def run(x: Any, y: Any) -> Any:
        check_batch_matmul(x, y, adj_x, adj_y, broadcast)
        return xp.matmul(adjoint(x) if adj_x else x, adjoint(y) if adj_y else y)

    return run
