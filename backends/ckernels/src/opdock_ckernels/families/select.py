"""Coordinates of what is not zero; selection by condition comes from its expression."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, codegen
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.prefix import offsets
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of

__all__ = ["table"]

table = KernelTable()

_MARK = """
KERNEL void mark(GLOBAL const T* x, GLOBAL int* y, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i < n) y[i] = LOAD != 0;
}
"""


def _coordinates(rank: int) -> str:
    sizes = "".join(f", i64 s{d}" for d in range(rank))
    lines = "".join(f"  y[at * {rank} + {d}] = rest / s{d}; rest %= s{d};\n" for d in range(rank))
    return (
        "KERNEL void coordinates(GLOBAL const int* marks, GLOBAL const int* places, GLOBAL i64* y, "
        f"i64 n{sizes}) {{\n  i64 i = GLOBAL_ID(0);\n  if (i >= n || !marks[i]) return;\n"
        f"  i64 rest = i, at = places[i];\n{lines}}}\n"
    )


@table.binder("Where", T=codegen.RENDERED)
def where(sig: NodeSig) -> Callable[[Array], Array]:
    """The coordinates of the elements that are not zero."""
    device, dtype = sig.device, sig.in_dtypes[0]
    dialect: codegen.Dialect = device.dialect
    text = _MARK.replace("LOAD", dialect.load(dtype, "x", "i"))
    kernel = device.kernel(codegen.helpers(dialect, text) + text, "mark", T=TYPES[dtype.name])
    kind = np.dtype(np.int64)

    def run(x: Array) -> Array:
        n, rank = math.prod(x.shape), x.ndim
        if not n:
            none: Array = device.allocate((0, rank), kind)
            return none
        marks: Array = device.allocate((n,), np.dtype(np.int32))
        device.launch(kernel, n, x, marks, np.int64(n))
        places, total = offsets(device, marks)
        out: Array = device.allocate((device.read_int(total), rank), kind)
        if out.size:
            steps = (np.int64(s) for s in strides_of(x.shape))
            write = device.kernel(_coordinates(rank), "coordinates")
            device.launch(write, n, marks, places, out, np.int64(n), *steps)
        return out

    return run
