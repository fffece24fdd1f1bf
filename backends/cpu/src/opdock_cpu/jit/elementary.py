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
HALVES: Final = (
    "Abs", "Add", "AddV2", "Ceil", "ClipByValue", "Div", "Equal", "Floor", "Greater",
    "GreaterEqual", "Inv", "InvGrad", "IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "Maximum",
    "Minimum", "Mul", "MulNoNan", "Neg", "NotEqual", "RealDiv", "Reciprocal", "Relu", "Relu6",
    "ReluGrad", "Rint", "Round", "SelectV2", "Sign", "Sqrt", "Square", "Sub", "TruncateDiv",
    "Xdivy", "Xlogy",
)  # fmt: skip
"""Ops that NumPy does in one quick pass, but for numbers of 16 bits."""
_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16})
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64}) | _HALVES
_MANY: Final = 1 << 15
"""Elements from which a second thread and vectors pay for the call."""
_MANY_HALVES: Final = 1 << 12
"""The same of 16-bit floats, which NumPy converts first and last."""
_SHAPES: Final = 16
"""So many shapes are kept where they change."""


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    if sig.op == "Pow" and sig.attrs["T"] not in _HALVES:
        if numpy_codes.wide("power"):
            return "NumPy has code for AVX-512"
        if not numpy_codes.chosen("sin"):
            return "C's function for each number is as quick as vectors without AVX2"
    shape = sig.out_shapes[0]
    if shape is not None and None not in shape and math.prod(n or 0 for n in shape) < _many(sig):
        return "NumPy is as quick on so few elements"
    try:
        return render.renders(codegen.node_line(sig))
    except ValueError as e:  # the node means more than its op's expression says
        return str(e)


def _many(sig: NodeSig) -> int:
    return _MANY_HALVES if sig.attrs["T"] in _HALVES else _MANY


def _broadcast(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """The common shape; None if there is none, which the portable kernel says in TF's words."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _bind(sig: NodeSig) -> Callable[..., Any]:
    line, names = codegen.node_line(sig), codegen.input_names(sig.op)
    few, dtype, many = portable_kernel(sig, out=True), sig.out_dtypes[0], _many(sig)

    @functools.lru_cache(maxsize=_SHAPES)
    @heard
    def generated(*shapes: tuple[int, ...]) -> Generated | None:
        shape = _broadcast(shapes)
        if shape is None or math.prod(shape) < many:
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
for _op in HALVES:
    table.binder(_op, T=_HALVES, when=_when, out=True, priority=1)(_bind)
