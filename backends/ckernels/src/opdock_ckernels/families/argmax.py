"""The positions of extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, axes, codegen
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()

_ARG = """
KERNEL void arg(GLOBAL const T* x, GLOBAL O* y, i64 n, i64 count, i64 inner) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 p = (i / inner) * count * inner + i % inner, best = 0, j = 0;
  A top = WORST;
  for (; j < count; ++j) {
    A v = LOAD(p + j * inner);
    if (v BEATS top) { top = v; best = j; }
  }
  y[i] = (O)best;
}
"""


@table.binder("ArgMax", "ArgMin", T=REALS, host_inputs=("dimension",))
def arg_extreme(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The position of the first extreme; NaN is never one."""
    device, dtype, out_type = sig.device, sig.in_dtypes[0], sig.out_dtypes[0]
    dialect: codegen.Dialect = device.dialect
    largest = sig.op == "ArgMax"
    if dtype.is_floating:
        worst = "-INFINITY" if largest else "INFINITY"
    else:
        worst = dialect.number(dtype, int(dtype.min if largest else dtype.max))
    text = _ARG.replace("LOAD(p + j * inner)", dialect.load(dtype, "x", "(p + j * inner)"))
    text = text.replace("WORST", worst).replace("BEATS", ">" if largest else "<")
    types = {"T": TYPES[dtype.name], "O": TYPES[out_type.name], "A": dialect.computed(dtype)}
    head = codegen.helpers(dialect, text)
    kernel = device.kernel(head + text, "arg", **types)

    def run(x: Array, dimension: Any) -> Array:
        axis = axes.searched(dimension, x.shape)
        out: Array = device.allocate((*x.shape[:axis], *x.shape[axis + 1 :]), out_type.np)
        inner = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
        sizes = (np.int64(v) for v in (out.size, x.shape[axis], inner))
        device.launch(kernel, out.size, x, out, *sizes)
        return out

    return run
