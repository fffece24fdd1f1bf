"""Sums of many tensors, and cross products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.pointwise import Pointwise, formula
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
        checks.check_cross(left, right)
        out: Array = device.allocate(left.shape, left.dtype)
        device.launch(kernel, out.size, left, right, out, np.int64(out.size))
        return out

    return run


_AT_ONCE = 8


@table.binder("AddN", "AccumulateNV2", T=codegen.RENDERED - {dtypes.bool}, out=True)
def add_n(sig: NodeSig) -> Callable[..., Array]:
    """The sum of the inputs, several in one kernel."""
    device, dtype = sig.device, sig.out_dtypes[0]
    programs: dict[int, Pointwise] = {}

    def total(count: int) -> Pointwise:
        if count not in programs:
            names = [f"x{i}" for i in range(count)]
            types = dict.fromkeys(names, dtype)
            text = " + ".join(names) if count > 1 else "where(True, x0, x0)"
            programs[count] = formula(device, text, types, dtype)
        return programs[count]

    def run(*args: Any) -> Array:
        values, out = args[:-1], args[-1]
        checks.check_addends(*values)
        rest = list(values)
        while True:
            head, rest = rest[:_AT_ONCE], rest[_AT_ONCE:]
            last = not rest
            partial: Array = total(len(head))(*head, into=out if last else None)
            if last:
                return partial
            rest.insert(0, partial)

    return run
