"""Bands of matrices, and transposition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_ckernels.dialect import WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.families.complex import conjugate
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import contiguous

__all__ = ["table"]

table = KernelTable()


@table.binder("ConjugateTranspose", T=HELD, host_inputs=("perm",))
def conjugate_transpose(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The dimensions in another order, complex elements conjugated."""
    device, complex_ = sig.device, sig.in_dtypes[0].is_complex

    def run(x: Array, perm: Any) -> Array:
        turned = contiguous(device, x, axes.permutation(perm, x.ndim))
        return conjugate(device, turned) if complex_ else turned

    return run


_BAND = """
KERNEL void band(GLOBAL const W* x, GLOBAL const W* zero, GLOBAL W* y, i64 n, i64 rows, i64 cols,
                 i64 low, i64 high) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 c = i % cols, r = (i / cols) % rows;
  y[i] = r - c <= low && c - r <= high ? x[i] : zero[0];
}
"""


@table.binder("MatrixBandPart", T=HELD, host_inputs=("num_lower", "num_upper"))
def matrix_band_part(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """Zeros outside a band."""
    device, dtype = sig.device, sig.in_dtypes[0].np
    kernel = device.kernel(_BAND, "band", W=WORDS[dtype.itemsize])
    zero: Array = device.upload(np.zeros((), dtype))

    def run(x: Array, num_lower: Any, num_upper: Any) -> Array:
        low, high = checks.band_of(x.shape, num_lower, num_upper)
        rows, cols = x.shape[-2:]
        out: Array = device.allocate(x.shape, x.dtype)
        sizes = (np.int64(v) for v in (x.size, rows, cols, low, high))
        device.launch(kernel, x.size, x, zero, out, *sizes)
        return out

    return run


@table.binder("Transpose", T=HELD, out=True, host_inputs=("perm",))
def transpose(sig: NodeSig) -> Callable[..., Array]:
    """The dimensions in another order."""
    device = sig.device

    def run(x: Array, perm: Any, out: Array | None) -> Array:
        return contiguous(device, x, axes.permutation(perm, x.ndim), out)

    return run
