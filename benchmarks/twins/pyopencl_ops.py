"""What a user of PyOpenCL writes for an op: its arrays, its kernels for elements and reductions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyopencl.array as cla
from pyopencl import clmath
from pyopencl.elementwise import ElementwiseKernel
from pyopencl.reduction import ReductionKernel
from pyopencl.scan import GenericScanKernel
from pyopencl.tools import dtype_to_ctype

from twins import pyopencl_twin

Call = Callable[..., Any]

MATH: Final = {
    "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atan2": "atan2", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh",
    "Erf": "erf", "Erfc": "erfc", "Exp": "exp", "Expm1": "expm1", "Floor": "floor",
    "Lgamma": "lgamma", "Log": "log", "Log1p": "log1p", "Mod": "fmod", "Rint": "rint",
    "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
"""The names of `pyopencl.clmath`."""

FORMULAS: Final = {
    "Add": "x[i] + y[i]", "AddV2": "x[i] + y[i]", "BiasAdd": "x[i] + y[i % many]",
    "Div": "x[i] / y[i]", "Elu": "x[i] < 0 ? expm1(x[i]) : x[i]",
    "FloorDiv": "floor(x[i] / y[i])", "FloorMod": "x[i] - floor(x[i] / y[i]) * y[i]",
    "Inv": "1 / x[i]", "LogicalAnd": "x[i] && y[i]", "LogicalNot": "!x[i]",
    "LogicalOr": "x[i] || y[i]", "Maximum": "fmax(x[i], y[i])", "Minimum": "fmin(x[i], y[i])",
    "Mul": "x[i] * y[i]", "Neg": "-x[i]", "Pow": "pow(x[i], y[i])", "RealDiv": "x[i] / y[i]",
    "Reciprocal": "1 / x[i]", "Relu": "fmax(x[i], 0.0f)", "Relu6": "fmin(fmax(x[i], 0.0f), 6.0f)",
    "Select": "x[i] ? y[i] : z[i]", "SelectV2": "x[i] ? y[i] : z[i]",
    "Rsqrt": "rsqrt(x[i])",
    "Selu": "1.0507009873554805f * (x[i] < 0 ? 1.6732632423543772f * expm1(x[i]) : x[i])",
    "Sigmoid": "1 / (1 + exp(-x[i]))", "Sign": "sign(x[i])", "Softplus": "log1p(exp(x[i]))",
    "Softsign": "x[i] / (1 + fabs(x[i]))", "Square": "x[i] * x[i]",
    "SquaredDifference": "(x[i] - y[i]) * (x[i] - y[i])", "Sub": "x[i] - y[i]",
}  # fmt: skip
"""Those of `ElementwiseKernel`, of arrays `x`, `y` and `z`; `many` is how many the last one has."""

TESTS: Final = {
    "Equal": "x[i] == y[i]",
    "Greater": "x[i] > y[i]",
    "GreaterEqual": "x[i] >= y[i]",
    "IsFinite": "isfinite(x[i])",
    "IsInf": "isinf(x[i])",
    "IsNan": "isnan(x[i])",
    "Less": "x[i] < y[i]",
    "LessEqual": "x[i] <= y[i]",
    "NotEqual": "x[i] != y[i]",
}
"""The same, where a result is true or false."""

FOLDS: Final = {
    "All": ("1", "a && b", "x[i]"),
    "Any": ("0", "a || b", "x[i]"),
    "L2Loss": ("0", "a + b", "x[i] * x[i] / 2"),
    "Max": ("-INFINITY", "fmax(a, b)", "x[i]"),
    "Mean": ("0", "a + b", "x[i]"),
    "Min": ("INFINITY", "fmin(a, b)", "x[i]"),
    "Prod": ("1", "a * b", "x[i]"),
    "Sum": ("0", "a + b", "x[i]"),
}
"""Those of `ReductionKernel`, which folds a whole array: start, step and element."""

SCANS: Final = {"Cumprod": ("1", "a * b"), "Cumsum": ("0", "a + b")}
"""Those of `GenericScanKernel`, whose segments are rows: start and step."""


def _named(dtype: Any) -> str:
    """An element type in C; truth values take a byte."""
    return "char" if dtype == np.bool_ else dtype_to_ctype(dtype)


@functools.cache
def elementwise(text: str, types: tuple[Any, ...], out: Any) -> Any:
    """The kernel of a formula for arrays of some types."""
    given = [f"{_named(t)} *{name}" for name, t in zip("xyz", types, strict=False)]
    head = ", ".join([f"{_named(out)} *out", *given, "int many"])
    return ElementwiseKernel(pyopencl_twin.context(), head, f"out[i] = {text}")


def formula(text: str, truth: bool = False) -> Call:
    """A scalar expression of arrays of one shape, or of an array and one of its last dimension."""

    def run(*arrays: Any) -> Any:
        if any(a.shape != arrays[0].shape for a in arrays) and "% many" not in text:
            raise TypeError("the kernel is of arrays of one shape")
        kind = np.dtype(np.int8) if truth else arrays[-1].dtype
        out = cla.empty(arrays[0].queue, arrays[0].shape, kind, allocator=arrays[0].allocator)
        kernel = elementwise(text, tuple(a.dtype for a in arrays), kind)
        kernel(out, *arrays, np.int32(arrays[-1].size))
        return out

    return run


@functools.cache
def folding(op: str, dtype: Any) -> Any:
    """The kernel of a fold for a type."""
    start, step, element = FOLDS[op]
    kind = np.int8 if dtype == np.bool_ else dtype
    return ReductionKernel(
        pyopencl_twin.context(), kind, neutral=start, reduce_expr=step, map_expr=element,
        arguments=f"__global const {_named(dtype)} *x",
    )  # fmt: skip


def reduction(op: str, attrs: Mapping[str, Any]) -> Call:
    """A fold of all elements; PyOpenCL has none of some axes."""

    def run(x: Any, axes: Any = None) -> Any:
        if axes is not None and axes.size < x.ndim:
            raise TypeError("ReductionKernel folds all axes")
        total = folding(op, x.dtype)(x)
        total = total / x.size if op == "Mean" else total
        total = total.astype(np.bool_) if x.dtype == np.bool_ else total
        return total.reshape((1,) * x.ndim) if attrs.get("keep_dims") else total

    return run


def scan(op: str, attrs: Mapping[str, Any]) -> Call | None:
    """Running folds of the rows."""
    if attrs.get("exclusive") or attrs.get("reverse"):
        return None
    start, step = SCANS[op]
    kernel = GenericScanKernel(
        pyopencl_twin.context(), np.float32, neutral=start, input_expr="x[i]",
        arguments="__global const float *x, __global float *out, int n",
        scan_expr=f"across_seg_boundary ? b : {step}", is_segment_start_expr="i % n == 0",
        output_statement="out[i] = item;",
    )  # fmt: skip

    def run(x: Any, axis: Any) -> Any:
        if int(axis) % x.ndim != x.ndim - 1:
            raise TypeError("the kernel is of rows")
        out = cla.empty_like(x)
        kernel(x.reshape(-1), out.reshape(-1), np.int32(x.shape[-1]))
        return out

    return run


def rows_at(x: Any, ids: Any, axis: Any = 0) -> Any:
    """Rows by their numbers."""
    if int(axis) != 0:
        raise TypeError("the kernel is of rows")
    where = ids if isinstance(ids, cla.Array) else cla.to_device(x.queue, ids)
    n, out = x.size // x.shape[0], cla.empty(x.queue, ids.shape + x.shape[1:], x.dtype)
    kernel = elementwise("x[y[i / many] * many + i % many]", (x.dtype, where.dtype), x.dtype)
    kernel(out, x, where, np.int32(n))
    return out


def inverted(x: Any) -> Any:
    """Where each number stands."""
    kernel = ElementwiseKernel(pyopencl_twin.context(), "int *out, int *x", "out[x[i]] = i")
    out = cla.empty_like(x)
    kernel(out, x)
    return out


WRITTEN: Final[dict[str, Callable[[Mapping[str, Any]], Call | None]]] = {
    "Abs": lambda a: abs,
    "AddN": lambda a: lambda xs: sum(xs[1:], xs[0]),
    "ConcatV2": lambda a: lambda xs, axis: cla.concatenate(tuple(xs), int(axis)),
    "ExpandDims": lambda a: lambda x, axis: x.reshape(
        np.expand_dims(np.empty(x.shape, np.void), int(axis)).shape),
    "GatherV2": lambda a: None if a.get("batch_dims") else rows_at,
    "InvertPermutation": lambda a: inverted,
    "OnesLike": lambda a: lambda x: cla.empty_like(x).fill(1),
    "Pack": lambda a: lambda xs: cla.stack(tuple(xs), a.get("axis", 0)),
    "Reshape": lambda a: lambda x, s: x.reshape(tuple(map(int, s))),
    "Transpose": lambda a: lambda x, order: x.transpose(tuple(map(int, order))),
    "ZerosLike": lambda a: cla.zeros_like,
}  # fmt: skip


def function(op: str, attrs: Mapping[str, Any]) -> Call | None:
    """The function of the op's inputs, or None where PyOpenCL's library has nothing for it."""
    if op in MATH:
        found: Call = getattr(clmath, MATH[op])
        return found
    if op in FORMULAS or op in TESTS:
        return formula(FORMULAS.get(op) or TESTS[op], truth=op in TESTS)
    if op in FOLDS:
        return reduction(op, attrs)
    if op in SCANS:
        return scan(op, attrs)
    return WRITTEN[op](attrs) if op in WRITTEN else None


def step(call: Call, inputs: Sequence[Any], known: Sequence[bool]) -> Callable[[], list[Any]]:
    """From arrays of NumPy to arrays of NumPy; what is known stays an array of NumPy's."""
    queue = pyopencl_twin.queue()
    given = functools.partial(cla.to_device, queue, allocator=pyopencl_twin.pool())

    def once() -> list[Any]:
        sent = [
            x if k else [given(one) for one in x] if isinstance(x, list) else given(x)
            for x, k in zip(inputs, known, strict=True)
        ]
        return [call(*sent).get(queue)]

    return once
