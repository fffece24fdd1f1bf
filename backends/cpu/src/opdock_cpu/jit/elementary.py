"""Elementwise ops that stand alone, on many elements: one pass on all threads.

What hangs together is a cluster already. A single function of NumPy's goes through its array in one
pass too, but on one thread, and an expression takes several.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, codegen, dtypes, heard
from opdock_cpu.jit import llvm, numpy_codes, render
from opdock_cpu.jit.generated import Generated
from opdock_cpu.portable import portable_kernel

__all__ = ["OPS", "table"]

table = KernelTable()
OPS: Final = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BesselI0e", "BesselI1e",
    "ClipByValue", "Cosh", "DivNoNan", "Elu", "EluGrad", "Erf", "Erfc", "Erfinv", "Exp", "Expm1",
    "FloorDiv", "InvGrad", "LeakyRelu", "LeakyReluGrad", "Log", "Log1p", "MulNoNan", "Ndtri", "Pow",
    "ReciprocalGrad", "Relu6", "Relu6Grad", "ReluGrad", "Rsqrt", "RsqrtGrad", "Selu", "SeluGrad",
    "Sigmoid", "SigmoidGrad", "Sinh", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad",
    "SqrtGrad", "SquaredDifference", "Tanh", "TanhGrad", "Xdivy", "Xlogy",
)  # fmt: skip
"""Ops of more than one step, or of a function that costs more than the memory it goes through."""
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_MANY: Final = 1 << 15
"""Elements from which a second thread and vectors pay for the call."""
_SHAPES: Final = 16
"""So many shapes are kept where they change."""


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    if sig.op == "Pow":
        if numpy_codes.wide("power"):
            return "NumPy has code for AVX-512"
        if not numpy_codes.chosen("sin"):
            return "C's function for each number is as quick as vectors without AVX2"
    shape = sig.out_shapes[0]
    if shape is not None and None not in shape and math.prod(n or 0 for n in shape) < _MANY:
        return "NumPy is as quick on so few elements"
    return render.renders(codegen.node_line(sig))


def _broadcast(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """The common shape; None if there is none, which the portable kernel says in TF's words."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _bind(sig: NodeSig) -> Callable[..., Any]:
    line, names = codegen.node_line(sig), codegen.input_names(sig.op)
    few, dtype = portable_kernel(sig, out=True), sig.out_dtypes[0]

    @functools.lru_cache(maxsize=_SHAPES)
    @heard
    def generated(*shapes: tuple[int, ...]) -> Generated | None:
        shape = _broadcast(shapes)
        if shape is None or math.prod(shape) < _MANY:
            return None
        inputs = list(zip(sig.in_dtypes, shapes, strict=True))
        return Generated(line, names, inputs, shape, [(dtype, shape)])

    def run(*args: Any) -> Any:
        *arrays, out = args
        code = generated(*map(np.shape, arrays))
        if code is None:
            return few(*args)
        return code(arrays, None if out is None else [out])[0]

    return run


for _op in OPS:
    table.binder(_op, T=_FLOATS, when=_when, out=True, priority=1)(_bind)
