"""Matrix products of single matrices and of broadcast batches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.narrow import NARROW, widened
from opdock_ckernels.pointwise import formula
from opdock_ckernels.product import Factor, multiply
from opdock_ckernels.protocols import Array

__all__ = ["product", "table"]

table = KernelTable()
_PLAIN = frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})
_SPARSE = frozenset({dtypes.float32, dtypes.bfloat16})

Run = Callable[..., Array]


def _numbered(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.arange(math.prod(shape), dtype=np.int32).reshape(shape)


def product(sig: NodeSig, finish: Callable[..., None] | None = None) -> Run:
    """The product of a node, with something done to it in place behind it."""
    device, ta, tb = sig.device, bool(sig.attrs["transpose_a"]), bool(sig.attrs["transpose_b"])
    one = device.upload(np.zeros(2, np.int32))

    def run(a: Array, b: Array, *more: Array) -> Array:
        checks.check_matmul(a, b, ta, tb)
        left, right = Factor(a, 1, a.shape, ta), Factor(b, 1, b.shape, tb)
        out: Array = device.allocate((left.rows, right.columns), a.dtype)
        multiply(device, left, right, out, one)
        if finish is not None:
            finish(out, *more)
        return out

    return run


@table.binder("MatMul", T=_PLAIN | NARROW)
def matmul(sig: NodeSig) -> Run:
    """The product of two matrices."""
    return widened(sig.device, sig.in_dtypes[0], product(sig))


@table.binder("BatchMatMul", "BatchMatMulV2", T=_PLAIN | NARROW)
def batch_matmul(sig: NodeSig) -> Run:
    """Products of batches of matrices; the second version broadcasts the batches."""
    device, ax, ay = sig.device, bool(sig.attrs["adj_x"]), bool(sig.attrs["adj_y"])
    broadcast = sig.op == "BatchMatMulV2"
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}

    def pairs(x: tuple[int, ...], y: tuple[int, ...], batch: tuple[int, ...]) -> Array:
        if (x, y) not in known:
            numbers = [np.broadcast_to(_numbered(s), batch).reshape(-1) for s in (x, y)]
            known[x, y] = device.upload(np.stack(numbers, axis=1))
        return known[x, y]

    def run(x: Array, y: Array) -> Array:
        checks.check_batch_matmul(x, y, ax, ay, broadcast)
        lead_x, lead_y = x.shape[:-2], y.shape[:-2]
        batch = np.broadcast_shapes(lead_x, lead_y)
        left = Factor(x, math.prod(lead_x), x.shape[-2:], ax)
        right = Factor(y, math.prod(lead_y), y.shape[-2:], ay)
        out: Array = device.allocate((*batch, left.rows, right.columns), x.dtype)
        if out.size:
            multiply(device, left, right, out, pairs(lead_x, lead_y, batch))
        return out

    return widened(sig.device, sig.in_dtypes[0], run)


@table.binder("SparseMatMul", Ta=_SPARSE, Tb=_SPARSE)
def sparse_matmul(sig: NodeSig) -> Run:
    """The product of two matrices of many zeros, of which nothing is made here."""
    device, run = sig.device, product(sig)
    wide = [
        (lambda x: x) if dtype is dtypes.float32
        else formula(device, "cast(x, float32)", {"x": dtype}, dtypes.float32)
        for dtype in sig.in_dtypes
    ]  # fmt: skip
    return lambda a, b: run(wide[0](a), wide[1](b))
