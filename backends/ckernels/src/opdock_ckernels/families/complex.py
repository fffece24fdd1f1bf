"""Complex numbers as pairs of their parts: made, taken apart and conjugated without arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import COMPLEX, KernelTable, NodeSig, dtypes
from opdock_ckernels.pointwise import broadcast_shape
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import spread

__all__ = ["conjugate", "table"]

table = KernelTable()

_SOURCE = """
KERNEL void join(GLOBAL const F* a, GLOBAL const F* b, GLOBAL F* y, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i < n) { y[2 * i] = a[i]; y[2 * i + 1] = b[i]; }
}

KERNEL void part(GLOBAL const F* x, GLOBAL F* y, i64 n, i64 which) {
  i64 i = GLOBAL_ID(0);
  if (i < n) y[i] = x[2 * i + which];
}

KERNEL void conjugate(GLOBAL const F* x, GLOBAL F* y, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i < n) { y[2 * i] = x[2 * i]; y[2 * i + 1] = -x[2 * i + 1]; }
}
"""


def _kernel(device: Any, name: str, bytes_: int) -> Any:
    return device.kernel(_SOURCE, name, F="float" if bytes_ == 8 else "double")


def conjugate(device: Any, x: Array) -> Array:
    """The conjugates of complex numbers."""
    out: Array = device.allocate(x.shape, x.dtype)
    kernel = _kernel(device, "conjugate", x.dtype.itemsize)
    device.launch(kernel, x.size, x, out, np.int64(x.size))
    return out


@table.binder(
    "Complex", T=frozenset({dtypes.float32, dtypes.float64}),
    Tout=COMPLEX,
)  # fmt: skip
def complex_(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Complex numbers from their parts."""
    device, dtype = sig.device, sig.out_dtypes[0].np
    kernel = _kernel(device, "join", dtype.itemsize)

    def run(real: Array, imag: Array) -> Array:
        shape = broadcast_shape([real.shape, imag.shape])
        out: Array = device.allocate(shape, dtype)
        parts = spread(device, real, shape), spread(device, imag, shape)
        device.launch(kernel, out.size, *parts, out, np.int64(out.size))
        return out

    return run


@table.binder("Real", "Imag", T=COMPLEX)
def part(sig: NodeSig) -> Callable[[Array], Array]:
    """The real or the imaginary parts."""
    device, which, dtype = sig.device, np.int64(sig.op == "Imag"), sig.out_dtypes[0].np
    kernel = _kernel(device, "part", sig.in_dtypes[0].size)

    def run(x: Array) -> Array:
        out: Array = device.allocate(x.shape, dtype)
        device.launch(kernel, x.size, x, out, np.int64(x.size), which)
        return out

    return run


@table.binder("Conj", T=COMPLEX)
def conj(sig: NodeSig) -> Callable[[Array], Array]:
    """The conjugates."""
    device = sig.device
    return lambda x: conjugate(device, x)
