"""Ops that hand their input on, checked or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opdock.plugin import FLOATS, KernelTable, NodeSig, checks, codegen
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import zeros

__all__ = ["table"]

table = KernelTable()


@table.binder("Snapshot", T=HELD, may_alias={0: 0})
@table.binder(
    "Identity", "GuaranteeConst", "StopGradient", "PreventGradient", T=HELD, may_alias={0: 0}
)
@table.binder("PlaceholderWithDefault", dtype=HELD, may_alias={0: 0})
def identity(sig: NodeSig) -> Callable[[Array], Array]:
    """The input itself."""
    return lambda x: x


_CHECK = """
KERNEL void check(GLOBAL const T* x, GLOBAL int* found, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  A v = LOAD;
  if (v != v) found[1] = 1;
  else if (!(fabs(v) < INFINITY)) found[0] = 1;
}
"""


@table.binder("CheckNumerics", T=FLOATS, may_alias={0: 0}, keeps=())
def check_numerics(sig: NodeSig) -> Callable[[Array], Array]:
    """The input, if all of it is finite."""
    device, dtype, message = sig.device, sig.in_dtypes[0], sig.attrs["message"]
    dialect: codegen.Dialect = device.dialect
    text = _CHECK.replace("LOAD", dialect.load(dtype, "x", "i"))
    types = {"T": TYPES[dtype.name], "A": dialect.computed(dtype)}
    kernel = device.kernel(codegen.helpers(dialect, text) + text, "check", **types)

    def run(x: Array) -> Array:
        found = zeros(device, (2,), np.dtype(np.int32))
        device.launch(kernel, x.size, x, found, np.int64(x.size))
        marks = device.download(found)
        if marks.any():
            raise checks.not_finite(message, *map(bool, marks))
        return x

    return run
