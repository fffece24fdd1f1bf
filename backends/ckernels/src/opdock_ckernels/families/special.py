"""Special functions, one element a work item, in double precision where the device has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, KernelTable, NodeSig, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.pointwise import broadcast_shape
from opdock_ckernels.protocols import Array
from opdock_ckernels.special import FUNCTIONS
from opdock_ckernels.strided import spread

__all__ = ["table"]

table = KernelTable()


def _kernel(sig: NodeSig) -> Any:
    device, dtype = sig.device, sig.out_dtypes[0]
    dialect: codegen.Dialect = device.dialect
    count, functions = FUNCTIONS[sig.op]
    params = ", ".join(f"GLOBAL const {TYPES[dtype.name]}* x{k}" for k in range(count))
    values = ", ".join(f"(A){dialect.load(dtype, f'x{k}', 'i')}" for k in range(count))
    store = dialect.store(dtype, "y", "i", f"({dialect.computed(dtype)})sp_{sig.op}({values})")
    info = np.finfo(np.float64 if device.has_double else np.float32)
    body = (
        f"KERNEL void special({params}, GLOBAL {TYPES[dtype.name]}* y, i64 n) {{\n"
        f"  i64 i = GLOBAL_ID(0);\n  if (i < n) {{ {store} }}\n}}\n"
    )
    macros = (
        f"#define A {'double' if device.has_double else 'float'}\n"
        f"#define EPS (A){float(info.eps)!r}\n#define TINY (A){4 * float(info.tiny)!r}\n"
    )
    return device.kernel(codegen.helpers(dialect, body) + macros + functions + body, "special")


@table.binder(*(op for op in FUNCTIONS if op != "RandomGammaGrad"), T=FLOATS)
@table.binder("RandomGammaGrad", T=frozenset({dtypes.float32, dtypes.float64}))
def special(sig: NodeSig) -> Callable[..., Array]:
    """The function of each element of the broadcast arguments."""
    device, kernel = sig.device, _kernel(sig)

    def run(*args: Array) -> Array:
        shape = broadcast_shape([a.shape for a in args])
        out: Array = device.allocate(shape, args[0].dtype)
        values = [spread(device, a, shape) for a in args]
        device.launch(kernel, out.size, *values, out, np.int64(out.size))
        return out

    return run
