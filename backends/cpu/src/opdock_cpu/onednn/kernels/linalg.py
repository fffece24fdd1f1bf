"""Matrix products on oneDNN; small ones are quicker through NumPy's BLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.kernels import linalg as numpy_kernels
from opdock_cpu.onednn.kernels.common import (
    PRIORITY,
    Array,
    PerShape,
    declined,
    result,
    size,
    supports,
    threads_for,
)  # fmt: skip
from opdock_cpu.onednn.matmul import matrices, product
from opdock_cpu.onednn.memory import TYPES, dense

__all__ = ["small", "table"]

table = KernelTable()

_TYPES: Final = frozenset({dtypes.float32, dtypes.bfloat16, dtypes.float16})
_WORTH: Final = 200_000
"""Multiply-adds from which oneDNN wins over BLAS: a call costs 2 us, one through NumPy 0.4."""


def _adjoints(sig: NodeSig) -> tuple[bool, bool]:
    attrs = sig.attrs
    if sig.op == "MatMul":
        return bool(attrs["transpose_a"]), bool(attrs["transpose_b"])
    return bool(attrs["adj_x"]), bool(attrs["adj_y"])


def small(rows: int, inner: int, columns: int, batch: int = 1) -> str:
    """Why BLAS is as good for a product of this size; empty when it is not."""
    if min(rows, columns) < 2:
        return "a vector times a matrix: BLAS reads the matrix as fast"
    macs = batch * rows * inner * columns
    if macs < _WORTH:
        return f"{macs} multiply-adds; oneDNN pays from {_WORTH}"
    return ""


def _when(sig: NodeSig) -> bool | str:
    why = declined(sig)
    if why:
        return why
    if not supports(sig.in_dtypes[0]):
        return f"this processor has no product of {sig.in_dtypes[0].name}"
    a, b = sig.in_shapes
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return "a factor is not a matrix"
    ta, tb = _adjoints(sig)
    *_, rows, inner = reversed(a[-2:]) if ta else a[-2:]
    columns = b[-2] if tb else b[-1]
    batch = size(sig.out_shapes[0][:-2]) if sig.out_shapes[0] else 1
    return small(rows, inner, columns, batch) or True  # type: ignore[arg-type]


@table.binder("MatMul", T=_TYPES, out=True, priority=PRIORITY, when=_when)
def matmul(sig: NodeSig) -> Callable[..., Array]:
    """The product of two matrices."""
    ta, tb = _adjoints(sig)
    kind, dtype = TYPES[sig.in_dtypes[0]], sig.out_dtypes[0].np
    check = numpy_kernels.check_matrices

    def make(a: Array, b: Array) -> Callable[..., Array]:
        check(a, b, ta, tb)
        left, right = matrices(a.shape, ta, kind), matrices(b.shape, tb, kind)
        shape = (left.dims[0], right.dims[1])
        macs = size(shape) * left.dims[1]
        if macs == 0:
            return _zeros(shape, dtype)
        run = product(left, right, dense(shape, kind), count=threads_for(macs)).run

        def call(a: Array, b: Array, out: Array | None) -> Array:
            if out is None:
                out = np.empty(shape, dtype)
            run(a, b, out)
            return out

        return call

    shapes = PerShape(make)

    def run(a: Array, b: Array, out: Array | None = None) -> Array:
        return shapes.find((a.shape, b.shape), a, b)(a, b, out)  # type: ignore[no-any-return]

    return run


def _zeros(shape: tuple[int, ...], dtype: Any) -> Callable[..., Array]:
    def call(a: Array, b: Array, out: Array | None) -> Array:
        out = result(out, shape, dtype)
        out[...] = 0
        return out

    return call


@table.binder("BatchMatMul", "BatchMatMulV2", T=_TYPES, out=True, priority=PRIORITY, when=_when)
def batch_matmul(sig: NodeSig) -> Callable[..., Array]:
    """Products of matrices over leading dimensions, which broadcast."""
    ta, tb = _adjoints(sig)
    kind, dtype = TYPES[sig.in_dtypes[0]], sig.out_dtypes[0].np
    check, broadcast = numpy_kernels.check_batches, sig.op == "BatchMatMulV2"

    def make(a: Array, b: Array) -> Callable[..., Array]:
        check(a, b, ta, tb, broadcast)
        rows, columns = a.shape[-1 if ta else -2], b.shape[-2 if tb else -1]
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*lead, rows, columns)
        macs = size(shape) * a.shape[-2 if ta else -1]
        if macs == 0:
            return _zeros(shape, dtype)
        left, right, flat = _aligned(a.shape, b.shape, shape)
        run = product(
            matrices(left, ta, kind), matrices(right, tb, kind), dense(flat, kind),
            count=threads_for(macs),
        ).run  # fmt: skip

        def call(a: Array, b: Array, out: Array | None) -> Array:
            if out is None:
                out = np.empty(shape, dtype)
            run(a, b, out)
            return out

        return call

    shapes = PerShape(make)

    def run(a: Array, b: Array, out: Array | None = None) -> Array:
        return shapes.find((a.shape, b.shape), a, b)(a, b, out)  # type: ignore[no-any-return]

    return run


def _aligned(
    a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes of equal rank; leading dimensions that do not broadcast are taken as one."""
    if a[:-2] == b[:-2]:
        flat = (size(a[:-2]),)
        return (*flat, *a[-2:]), (*flat, *b[-2:]), (*flat, *out[-2:])
    rank = len(out)
    return (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, out
