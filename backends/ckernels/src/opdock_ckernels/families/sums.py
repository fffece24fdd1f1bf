"""Cross products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, codegen
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()

_CROSS = """
KERNEL void cross3(GLOBAL const T* a, GLOBAL const T* b, GLOBAL T* y, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 d = i % 3, base = i - d, p = base + (d + 1) % 3, q = base + (d + 2) % 3;
  STORE
}
"""


@table.binder("Cross", T=REALS)
def cross(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The cross product along the last axis."""
    device, dtype = sig.device, sig.in_dtypes[0]
    dialect: codegen.Dialect = device.dialect
    a, b = ([dialect.load(dtype, name, place) for place in ("p", "q")] for name in ("a", "b"))
    value = f"({a[0]} * {b[1]} - {a[1]} * {b[0]})"
    text = _CROSS.replace("STORE", dialect.store(dtype, "y", "i", value))
    head = codegen.helpers(dialect, text)
    kernel = device.kernel(head + text, "cross3", T=TYPES[dtype.name])

    def run(left: Array, right: Array) -> Array:
        if left.shape != right.shape or left.shape[-1:] != (3,):
            raise codegen.invalid(
                "Both inputs must be of same shape with last dimension 3: "
                f"{codegen.dims(left.shape)} vs. {codegen.dims(right.shape)}"
            )
        out: Array = device.allocate(left.shape, left.dtype)
        device.launch(kernel, out.size, left, right, out, np.int64(out.size))
        return out

    return run
