"""Special functions, in double precision where the result or the device asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import FLOATS, DType, KernelTable, NodeSig, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.pointwise import broadcast_shape
from opdock_ckernels.protocols import Array
from opdock_ckernels.special import FUNCTIONS, HEAD, Special
from opdock_ckernels.strided import spread

__all__ = ["table"]

table = KernelTable()
_LANES: Final = 16
"""Elements of a work item of a CPU."""
_ENOUGH: Final = 1e-12
"""What of a sum in double precision does not count in single."""
_WORDS: Final = {
    "LOG": "log", "EXP": "exp", "POW": "pow", "LOG1P": "log1p", "TAN": "tan", "LGAMMA": "lgamma",
}  # fmt: skip


def _macros(device: Any, function: Special, dtype: DType, lanes: int) -> str:
    """What the words of a function's source mean."""
    exact = dtype is dtypes.float64
    plain = function.single and not exact and not device.is_cpu
    wide = device.has_double and not plain
    info = np.finfo(np.float64 if wide else np.float32)
    enough = float(info.eps) if exact or not wide else _ENOUGH
    prefix = "" if exact or not wide else device.rounded
    words = {
        "A": "double" if wide else "float", "LANES": lanes, "ENOUGH": f"(A){enough!r}",
        "TINY": f"(A){4 * float(info.tiny)!r}",
        **{f"{word}(...)": f"{prefix}{name}(__VA_ARGS__)" for word, name in _WORDS.items()},
    }  # fmt: skip
    return "".join(f"#define {word} {meaning}\n" for word, meaning in words.items())


def _body(dialect: codegen.Dialect, op: str, dtype: DType) -> str:
    """The kernel: a work item loads its elements, has them computed, and stores them."""
    function, kind = FUNCTIONS[op], TYPES[dtype.name]
    names = [f"a{k}" for k in range(function.arguments)]
    params = ", ".join(f"GLOBAL const {kind}* x{k}" for k in range(function.arguments))
    load = " ".join(f"{a}[e] = (A){dialect.load(dtype, f'x{a[1:]}', 'i')};" for a in names)
    store = dialect.store(dtype, "y", "i", f"({dialect.computed(dtype)})out[e]")
    if function.together:
        call = f"sp_{op}({', '.join(names)}, out);"
    else:
        call = f"EACH out[e] = sp_{op}({', '.join(f'{a}[e]' for a in names)});"
    return f"""
KERNEL void special({params}, GLOBAL {kind}* y, i64 n) {{
  i64 first = (i64)GLOBAL_ID(0) * LANES;
  if (first >= n) return;
  A {", ".join(f"{a}[LANES]" for a in names)}, out[LANES];
  int full = n - first >= LANES;
  if (full) EACH {{ i64 i = first + e; {load} }}
  else EACH {{ i64 i = first + e < n ? first + e : n - 1; {load} }}
  {call}
  if (full) EACH {{ i64 i = first + e; {store} }}
  else EACH {{ i64 i = first + e; if (i < n) {{ {store} }} }}
}}
"""


@table.binder(*(op for op in FUNCTIONS if op != "RandomGammaGrad"), T=FLOATS)
@table.binder("RandomGammaGrad", T=frozenset({dtypes.float32, dtypes.float64}))
def special(sig: NodeSig) -> Callable[..., Array]:
    """The function of each element of the broadcast arguments."""
    device, dtype, function = sig.device, sig.out_dtypes[0], FUNCTIONS[sig.op]
    lanes = _LANES if device.is_cpu else 1
    body = _body(device.dialect, sig.op, dtype)
    macros = _macros(device, function, dtype, lanes)
    text = codegen.helpers(device.dialect, body) + macros + HEAD + function.source + body
    kernel = device.kernel(text, "special")

    def run(*args: Array) -> Array:
        shape = broadcast_shape([a.shape for a in args])
        out: Array = device.allocate(shape, args[0].dtype)
        values = [spread(device, a, shape) for a in args]
        device.launch(kernel, -(-out.size // lanes), *values, out, np.int64(out.size))
        return out

    return run
