"""Matrix products on oneDNN; small ones are quicker through NumPy's BLAS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, note
from opdock_cpu import blas
from opdock_cpu.onednn.fusions import WORTH
from opdock_cpu.onednn.kernels.common import (
    PRIORITY,
    Array,
    PerShape,
    declined_always,
    known,
    result,
    size,
    supports,
    threads_for,
)  # fmt: skip
from opdock_cpu.onednn.matmul import Factors, laid_out, matrices, multiplied
from opdock_cpu.onednn.memory import TYPES, Desc, dense
from opdock_cpu.onednn.packing import settled
from opdock_cpu.onednn.stays import stays

__all__ = ["blas_product", "blas_serves", "multiply", "packing_pays", "table"]

table = KernelTable()

_TYPES: Final = frozenset({dtypes.float32, dtypes.bfloat16, dtypes.float16})


def _adjoints(sig: NodeSig) -> tuple[bool, bool]:
    attrs = sig.attrs
    if sig.op == "MatMul":
        return bool(attrs["transpose_a"]), bool(attrs["transpose_b"])
    return bool(attrs["adj_x"]), bool(attrs["adj_y"])


def _small(rows: int, inner: int, columns: int, batch: int = 1) -> str:
    """Why plain BLAS is as good for a product of this size; empty when it is not."""
    macs = batch * rows * inner * columns
    if macs < WORTH and not (batch == 1 and blas.shares(rows, inner, columns)):
        return f"{macs} multiply-adds; oneDNN pays from {WORTH}"
    return ""


def blas_serves(rows: int, inner: int, columns: int) -> bool:
    """Whether BLAS is quicker than oneDNN: with few multiply-adds, or a vector for a factor."""
    return min(rows, columns) < 2 or rows * inner * columns < WORTH


def packing_pays(rows: int, inner: int, columns: int) -> bool:
    """Whether the second factor, once laid out for oneDNN, is worth more than BLAS.

    Not where it is the vector: oneDNN takes ten times as long for that.
    """
    return columns > 1 and rows * inner * columns >= WORTH


def blas_product(a: Desc, b: Desc, transpose_a: bool, transpose_b: bool) -> Callable[..., Array]:
    """The product of two matrices by BLAS, over (a, b, out), on this thread."""

    def call(a: Array, b: Array, out: Array | None) -> Array:
        return np.dot(a.T if transpose_a else a, b.T if transpose_b else b, out)

    note("BLAS on this thread")
    shared = blas.shares(a.dims[0], a.dims[1], b.dims[1])
    return blas.unshared(call) if shared else call


def multiply(
    a: Desc, b: Desc, out: Desc, bias: Desc | None = None,
    post_ops: Sequence[tuple[Any, ...]] = (), kept: bool = False,
    direct: Callable[..., Any] | None = None,
) -> Callable[..., None]:  # fmt: skip
    """What computes `a @ b + bias` and then the post-ops, over (a, b[, bias], out).

    Args:
        a, b, out, bias, post_ops: as in `product`.
        kept: `b` is a constant or the value of a variable: it is laid out once if it stays.
        direct: what computes the same of `b` as it is, instead of oneDNN.
    """
    factors = Factors(a, b, out, bias, post_ops)
    count = threads_for(factors.macs)
    if direct is None:
        direct = multiplied(factors, count)
    if not kept:
        return direct
    packed = laid_out(factors, count)
    return settled(direct, packed, 1) if packed.lays_out(1) else direct


def _when(sig: NodeSig) -> bool | str:
    why = declined_always(sig)
    if why:
        return why
    if not supports(sig.in_dtypes[0]):
        return f"this processor has no product of {sig.in_dtypes[0].name}"
    if not known(sig):
        return True  # each product is computed as is best for its size
    a, b = sig.in_shapes
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return "a factor is not a matrix"
    ta, tb = _adjoints(sig)
    *_, rows, inner = reversed(a[-2:]) if ta else a[-2:]
    columns = b[-2] if tb else b[-1]
    batch = size(sig.out_shapes[0][:-2]) if sig.out_shapes[0] else 1
    return _small(rows, inner, columns, batch) or True  # type: ignore[arg-type]


@table.binder("MatMul", T=_TYPES, out=True, priority=PRIORITY, when=_when)
def matmul(sig: NodeSig) -> Callable[..., Array]:
    """The product of two matrices."""
    ta, tb = _adjoints(sig)
    kind, dtype = TYPES[sig.in_dtypes[0]], sig.out_dtypes[0].np
    check, kept = checks.check_matmul, stays(sig, 1)

    def make(a: Array, b: Array) -> Callable[..., Array]:
        check(a, b, ta, tb)
        left, right = matrices(a.shape, ta, kind), matrices(b.shape, tb, kind)
        shape = (left.dims[0], right.dims[1])
        macs = size(shape) * left.dims[1]
        if macs == 0:
            return _zeros(shape, dtype)
        direct, sizes = None, (shape[0], left.dims[1], shape[1])
        if blas_serves(*sizes):
            direct = blas_product(left, right, ta, tb)
            if not kept or not packing_pays(*sizes):
                return direct
        run = multiply(left, right, dense(shape, kind), kept=kept, direct=direct)

        def call(a: Array, b: Array, out: Array | None) -> Array:
            if out is None:
                out = np.empty(shape, dtype)
            run(a, b, out)
            return out

        return call

    shapes = PerShape(make)

    def run(a: Array, b: Array, out: Array | None = None) -> Array:
        return shapes.find((a.shape, b.shape), a, b)(a, b, out)

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
    check, broadcast = checks.check_batch_matmul, sig.op == "BatchMatMulV2"

    def make(a: Array, b: Array) -> Callable[..., Array]:
        check(a, b, ta, tb, broadcast)
        rows, columns = a.shape[-1 if ta else -2], b.shape[-2 if tb else -1]
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*lead, rows, columns)
        macs = size(shape) * a.shape[-2 if ta else -1]
        if macs == 0:
            return _zeros(shape, dtype)
        left, right, flat = _aligned(a.shape, b.shape, shape)
        factors = Factors(
            matrices(left, ta, kind), matrices(right, tb, kind), dense(flat, kind)
        )  # fmt: skip
        run = multiplied(factors, threads_for(macs))

        def call(a: Array, b: Array, out: Array | None) -> Array:
            if out is None:
                out = np.empty(shape, dtype)
            run(a, b, out)
            return out

        return call

    shapes = PerShape(make)

    def run(a: Array, b: Array, out: Array | None = None) -> Array:
        return shapes.find((a.shape, b.shape), a, b)(a, b, out)

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
