"""Matrix products by cuBLAS, in the elements' own type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from opdock.plugin import COMPLEX, FLOATS, KernelTable, NodeSig, checks
from opdock_cuda.blas import Matrices

__all__ = ["table"]

table = KernelTable()
_PRIORITY = 10
_TYPES = FLOATS | COMPLEX

Run = Callable[[Any, Any], Any]


def _batch(x: Any, turned: bool, adjoint: bool, alone: bool) -> Matrices:
    """The matrices of an array's last two dimensions; one alone serves every product."""
    rows, columns = x.shape[-2:]
    used = (columns, rows) if turned else (rows, columns)
    step = 0 if alone else rows * columns
    return Matrices(x, *used, columns, turned, step, conjugate=adjoint)


def _product(device: Any, a: Matrices, b: Matrices, out: Any) -> Any:
    if out.size and a.columns:
        device.gemm(a, b, out)
    else:
        device.fill_zero(out)
    return out


@table.binder("MatMul", T=_TYPES, priority=_PRIORITY)
def matmul(sig: NodeSig) -> Run:
    """The product of two matrices."""
    device, ta, tb = sig.device, bool(sig.attrs["transpose_a"]), bool(sig.attrs["transpose_b"])

    def run(a: Any, b: Any) -> Any:
        checks.check_matmul(a, b, ta, tb)
        left, right = _batch(a, ta, False, True), _batch(b, tb, False, True)
        return _product(device, left, right, device.allocate((left.rows, right.columns), a.dtype))

    return run


@table.binder("BatchMatMul", "BatchMatMulV2", T=_TYPES, priority=_PRIORITY)
def batch_matmul(sig: NodeSig) -> Run:
    """Products of batches of matrices; the second version broadcasts the batches."""
    device, ax, ay = sig.device, bool(sig.attrs["adj_x"]), bool(sig.attrs["adj_y"])
    broadcast, adjoint = sig.op == "BatchMatMulV2", sig.in_dtypes[0].is_complex

    def spread(x: Any, batch: tuple[int, ...]) -> Any:
        """`x` with as many matrices as there are products, unless it has only one."""
        if x.shape[:-2] == batch or math.prod(x.shape[:-2]) == 1:
            return x
        return cupy.ascontiguousarray(cupy.broadcast_to(x, (*batch, *x.shape[-2:])))

    def run(x: Any, y: Any) -> Any:
        checks.check_batch_matmul(x, y, ax, ay, broadcast)
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        factors = []
        for value, turned in ((x, ax), (y, ay)):
            alone = math.prod(value.shape[:-2]) == 1
            factors.append(_batch(spread(value, batch), turned, adjoint and turned, alone))
        left, right = factors
        out = device.allocate((*batch, left.rows, right.columns), x.dtype)
        return _product(device, left, right, out)

    return run
