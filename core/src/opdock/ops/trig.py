"""Trigonometric and hyperbolic functions, elementwise."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import ELEMENTWISE, explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.elementary import (
    INEXACT,
    NUMBERS,
    REAL,
    conjugate,
    neg_op,
    reciprocal_op,
    rsqrt_op,
    square_op,
    unary,
)  # fmt: skip
from opdock.ops.registry import OpSpec, define_op
from opdock.ops.support.common_shapes import broadcast2
from opdock.ops.unbroadcast import unbroadcast_pair

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sinh", "tan",
]  # fmt: skip

sin_op = unary("Sin", INEXACT, "sin(x)")
cos_op = unary("Cos", INEXACT, "cos(x)")
# TF 1.15 lists integers for these four, but computes floats and complex numbers only.
tan_op = unary("Tan", NUMBERS, "tan(x)")
asin_op = unary("Asin", NUMBERS, "asin(x)")
acos_op = unary("Acos", NUMBERS, "acos(x)")
atan_op = unary("Atan", NUMBERS, "atan(x)")
sinh_op = unary("Sinh", INEXACT, "sinh(x)")
cosh_op = unary("Cosh", INEXACT, "cosh(x)")
asinh_op = unary("Asinh", INEXACT, "asinh(x)")
acosh_op = unary("Acosh", INEXACT, "acosh(x)")
atanh_op = unary("Atanh", INEXACT, "atanh(x)")
atan2_op: OpSpec = define_op("Atan2", "y: T, x: T -> z: T", REAL, expr="atan2(y, x)")
atan2_op.shape(broadcast2)


@sin_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * cos_op(conjugate(op.inputs[0]))


@cos_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return neg_op(grad) * sin_op(conjugate(op.inputs[0]))


@tan_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * square_op(reciprocal_op(cos_op(conjugate(op.inputs[0]))))


@asin_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = conjugate(op.inputs[0])
    return grad * rsqrt_op(1 - square_op(x))


@acos_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = conjugate(op.inputs[0])
    return neg_op(grad) * rsqrt_op(1 - square_op(x))


@atan_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = conjugate(op.inputs[0])
    return grad * reciprocal_op(1 + square_op(x))


@sinh_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * cosh_op(conjugate(op.inputs[0]))


@cosh_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * sinh_op(conjugate(op.inputs[0]))


@asinh_op.gradient
def _(op: Operation, grad: Any) -> Any:
    # The derivative of the inverse, by the result: asinh' (sinh y) = 1 / cosh y.
    return grad / cosh_op(conjugate(op.outputs[0]))


@acosh_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad / sinh_op(conjugate(op.outputs[0]))


@atanh_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = conjugate(op.inputs[0])
    return grad * reciprocal_op(1 - square_op(x))


@atan2_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    y, x = op.inputs
    scaled = grad / (square_op(x) + square_op(y))
    return unbroadcast_pair(x * scaled, neg_op(y) * scaled, y, x)


@extensible
@explained(ELEMENTWISE)
def sin(x: Any, name: str | None = None) -> Tensor:
    """The sine of angles in radians, elementwise, for floats and complex numbers."""
    return sin_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def cos(x: Any, name: str | None = None) -> Tensor:
    """The cosine of angles in radians, elementwise, for floats and complex numbers."""
    return cos_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def tan(x: Any, name: str | None = None) -> Tensor:
    """The tangent of angles in radians, elementwise, for floats and complex numbers."""
    return tan_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def asin(x: Any, name: str | None = None) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is `x`, elementwise; NaN outside [-1, 1]."""
    return asin_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def acos(x: Any, name: str | None = None) -> Tensor:
    """The angle in [0, pi] whose cosine is `x`, elementwise; NaN outside [-1, 1]."""
    return acos_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def atan(x: Any, name: str | None = None) -> Tensor:
    """The angle in (-pi/2, pi/2) whose tangent is `x`, elementwise."""
    return atan_op(x, name=name)  # type: ignore[no-any-return]


@extensible
def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle in [-pi, pi] of the points `(x, y)`, elementwise, with broadcasting.

    Args:
        y: a tensor of floats.
        x: a tensor of the same type.
        name: a name for the operation.

    Returns:
        A tensor of that type in the broadcast shape.
    """
    return atan2_op(y, x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def sinh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic sine, elementwise, for floats and complex numbers."""
    return sinh_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def cosh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic cosine, elementwise, for floats and complex numbers."""
    return cosh_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def asinh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic sine, elementwise, for floats and complex numbers."""
    return asinh_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def acosh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic cosine, elementwise; NaN below 1."""
    return acosh_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def atanh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic tangent, elementwise; infinite at -1 and 1, NaN outside."""
    return atanh_op(x, name=name)  # type: ignore[no-any-return]
