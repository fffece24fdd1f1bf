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

from twins import pyopencl_twin

Call = Callable[..., Any]

MATH: Final = {
    "Acos": "acos", "Asin": "asin", "Atan": "atan", "Ceil": "ceil", "Cos": "cos", "Erf": "erf",
    "Erfc": "erfc", "Exp": "exp", "Expm1": "expm1", "Floor": "floor", "Lgamma": "lgamma",
    "Log": "log", "Log1p": "log1p", "Rint": "rint", "Rsqrt": "rsqrt", "Sin": "sin",
    "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
"""The names of `pyopencl.clmath`."""

FORMULAS: Final = {
    "Add": "x[i] + y[i]", "AddV2": "x[i] + y[i]", "Elu": "x[i] < 0 ? expm1(x[i]) : x[i]",
    "Maximum": "fmax(x[i], y[i])", "Minimum": "fmin(x[i], y[i])", "Mul": "x[i] * y[i]",
    "Neg": "-x[i]", "Pow": "pow(x[i], y[i])", "RealDiv": "x[i] / y[i]",
    "Reciprocal": "1 / x[i]", "Relu": "fmax(x[i], 0.0f)", "Relu6": "fmin(fmax(x[i], 0.0f), 6.0f)",
    "Sigmoid": "1 / (1 + exp(-x[i]))", "Softplus": "log1p(exp(x[i]))",
    "Softsign": "x[i] / (1 + fabs(x[i]))", "Square": "x[i] * x[i]",
    "SquaredDifference": "(x[i] - y[i]) * (x[i] - y[i])", "Sub": "x[i] - y[i]",
}  # fmt: skip
"""Those of `ElementwiseKernel`, of floats `x` and, where there are two, `y`."""

FOLDS: Final = {
    "L2Loss": ("0", "a + b", "x[i] * x[i] / 2"),
    "Max": ("-INFINITY", "fmax(a, b)", "x[i]"),
    "Mean": ("0", "a + b", "x[i]"),
    "Min": ("INFINITY", "fmin(a, b)", "x[i]"),
    "Prod": ("1", "a * b", "x[i]"),
    "Sum": ("0", "a + b", "x[i]"),
}
"""Those of `ReductionKernel`, which folds a whole array: start, step and element."""


def formula(text: str) -> Call:
    """A scalar expression of arrays of one shape."""
    names = "xy" if "y[i]" in text else "x"
    given = ", ".join(f"float *{name}" for name in names)
    kernel = ElementwiseKernel(pyopencl_twin.context(), f"float *out, {given}", f"out[i] = {text}")

    def run(*arrays: Any) -> Any:
        if {a.shape for a in arrays} != {arrays[0].shape} or arrays[0].dtype != np.float32:
            raise TypeError("the kernel is of float32 arrays of one shape")
        out = cla.empty_like(arrays[0])
        kernel(out, *arrays)
        return out

    return run


def reduction(op: str) -> Call:
    """A fold of all elements; PyOpenCL has none of some axes."""
    start, step, element = FOLDS[op]
    kernel = ReductionKernel(
        pyopencl_twin.context(), np.float32, neutral=start, reduce_expr=step, map_expr=element,
        arguments="__global const float *x",
    )  # fmt: skip

    def run(x: Any, axes: Any = None) -> Any:
        if axes is not None and len({int(a) % x.ndim for a in np.ravel(axes)}) < x.ndim:
            raise TypeError("ReductionKernel folds all axes")
        total = kernel(x)
        return total / x.size if op == "Mean" else total

    return run


WRITTEN: Final[dict[str, Call]] = {
    "Abs": abs,
    "ConcatV2": lambda xs, axis: cla.concatenate(tuple(xs), int(axis)),
    "Less": lambda x, y: x < y,
    "Greater": lambda x, y: x > y,
    "OnesLike": lambda x: cla.empty_like(x).fill(1),
    "Pack": lambda xs: cla.stack(tuple(xs)),
    "Transpose": lambda x, order: x.transpose(tuple(map(int, order))),
    "ZerosLike": cla.zeros_like,
}


def function(op: str, attrs: Mapping[str, Any]) -> Call | None:
    """The function of the op's inputs, or None where nobody wrote one."""
    if op in MATH:
        found: Call = getattr(clmath, MATH[op])
        return found
    if op in FORMULAS:
        return formula(FORMULAS[op])
    if op in FOLDS:
        return reduction(op)
    return WRITTEN.get(op)


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
