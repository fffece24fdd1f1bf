"""Elementwise functions of one argument: signs, powers, exponentials, logarithms, rounding."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import ELEMENTWISE, explained
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import OpSpec, define_op, get, keeps_slices
from opdock.ops.support.common_shapes import merge_all, unchanged

__all__ = [
    "abs", "ceil", "exp", "expm1", "floor", "is_finite", "is_inf", "is_nan", "log", "log1p",
    "log_sigmoid", "negative", "reciprocal", "rint", "round", "rsqrt", "sigmoid", "sign", "sqrt",
    "square", "tanh",
]  # fmt: skip

NUMBERS = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"
INEXACT = "T: {bfloat16, half, float, double, complex64, complex128}"
REAL = "T: {bfloat16, half, float, double}"


def unary(op: str, attrs: str, expr: str) -> OpSpec:
    """Defines `y = op(x)`."""
    spec = define_op(op, "x: T -> y: T", attrs, expr=expr)
    spec.shape(unchanged)
    return spec


def unary_grad(op: str, expr: str) -> OpSpec:
    """Defines `z = op(y, dy)`: the gradient of a function by its own result `y`."""
    spec = define_op(op, "y: T, dy: T -> z: T", INEXACT, expr=expr)
    spec.shape(unchanged)
    return spec


@explained(ELEMENTWISE)
def conjugate(x: Any) -> Any:
    """The complex conjugate; a real tensor itself, without a node."""
    return get("Conj")(x) if x.dtype.is_complex else x


def map_sparse(op: OpSpec, x: Any, name: str | None) -> Any:
    """`op` on a tensor, or on the values of a SparseTensor."""
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, op(x.values, name=name), x.dense_shape)
    return op(x, name=name)


# ---------------------------------------------------------------- definitions
abs_op = unary("Abs", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", "abs(x)")
neg_op = unary("Neg", NUMBERS, "-x")
sign_op = unary("Sign", NUMBERS, "sign(x)")
inv_op = unary("Inv", NUMBERS, "1 / x")
reciprocal_op = unary("Reciprocal", NUMBERS, "1 / x")
square_op = unary("Square", NUMBERS, "x * x")
sqrt_op = unary("Sqrt", INEXACT, "sqrt(x)")
rsqrt_op = unary("Rsqrt", INEXACT, "1 / sqrt(x)")
exp_op = unary("Exp", INEXACT, "exp(x)")
expm1_op = unary("Expm1", INEXACT, "expm1(x)")
log_op = unary("Log", INEXACT, "log(x)")
log1p_op = unary("Log1p", INEXACT, "log1p(x)")
sigmoid_op = unary("Sigmoid", INEXACT, "1 / (1 + exp(-x))")
tanh_op = unary("Tanh", INEXACT, "tanh(x)")
round_op = unary("Round", NUMBERS, "rint(x)").not_differentiable()
floor_op = unary("Floor", REAL, "floor(x)").not_differentiable()
ceil_op = unary("Ceil", REAL, "ceil(x)").not_differentiable()
rint_op = unary("Rint", REAL, "rint(x)").not_differentiable()

# As in TF, nothing comes back through a pole when nothing arrives there.
_RECIPROCAL_GRAD = "where(dy == 0, 0, -dy * conj(y) * conj(y))"
inv_grad_op = unary_grad("InvGrad", _RECIPROCAL_GRAD)
reciprocal_grad_op = unary_grad("ReciprocalGrad", _RECIPROCAL_GRAD)
sqrt_grad_op = unary_grad("SqrtGrad", "where(dy == 0, 0, dy * 0.5 / conj(y))")
rsqrt_grad_op = unary_grad(
    "RsqrtGrad", "where(dy == 0, 0, dy * -0.5 * conj(y) * conj(y) * conj(y))"
)
sigmoid_grad_op = unary_grad("SigmoidGrad", "dy * conj(y) * (1 - conj(y))")
tanh_grad_op = unary_grad("TanhGrad", "dy * (1 - conj(y) * conj(y))")

is_nan_op = define_op("IsNan", "x: T -> y: bool", REAL, expr="isnan(x)").not_differentiable()
is_inf_op = define_op("IsInf", "x: T -> y: bool", REAL, expr="isinf(x)").not_differentiable()
is_finite_op = define_op(
    "IsFinite", "x: T -> y: bool", REAL, expr="isfinite(x)"
).not_differentiable()
for _spec in (is_nan_op, is_inf_op, is_finite_op):
    _spec.shape(unchanged)
for _spec in (inv_grad_op, reciprocal_grad_op, sqrt_grad_op, rsqrt_grad_op, sigmoid_grad_op,
              tanh_grad_op):  # fmt: skip
    _spec.shape(merge_all)


# ---------------------------------------------------------------- gradients
@abs_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * sign_op(op.inputs[0])


@neg_op.gradient
@keeps_slices
def _(op: Operation, grad: Any) -> Any:
    return neg_op(grad) if isinstance(grad, Tensor) else -grad


@sign_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return get("ZerosLike")(op.inputs[0])


@inv_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return inv_grad_op(op.outputs[0], grad)


@reciprocal_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return reciprocal_grad_op(op.outputs[0], grad)


@square_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = conjugate(op.inputs[0])
    return grad * (x * 2.0 if not x.dtype.is_integer else x * 2)


@sqrt_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return sqrt_grad_op(op.outputs[0], grad)


@rsqrt_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return rsqrt_grad_op(op.outputs[0], grad)


@exp_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * conjugate(op.outputs[0])


@expm1_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * exp_op(conjugate(op.inputs[0]))


@log_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * reciprocal_op(conjugate(op.inputs[0]))


@log1p_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * reciprocal_op(1 + conjugate(op.inputs[0]))


@sigmoid_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return sigmoid_grad_op(op.outputs[0], grad)


@tanh_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return tanh_grad_op(op.outputs[0], grad)


@inv_grad_op.gradient
@reciprocal_grad_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    y = conjugate(op.inputs[0])
    return [
        conjugate(grad) * -2.0 * op.inputs[1] * y,
        reciprocal_grad_op(y, grad),
    ]


@sqrt_grad_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    by_y = grad / op.inputs[0]
    return [neg_op(conjugate(by_y)) * op.outputs[0], 0.5 * by_y]


@rsqrt_grad_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    y, dy = op.inputs
    grad_y = -1.5 * conjugate(grad) * dy * square_op(conjugate(y))
    return [grad_y, rsqrt_grad_op(conjugate(y), grad)]


@sigmoid_grad_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    y, by_dy = conjugate(op.inputs[0]), conjugate(grad) * op.inputs[1]
    return [by_dy - 2.0 * by_dy * y, sigmoid_grad_op(y, grad)]


@tanh_grad_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    y = conjugate(op.inputs[0])
    return [conjugate(grad) * -2.0 * op.inputs[1] * y, tanh_grad_op(y, grad)]


# ---------------------------------------------------------------- public functions
@extensible
def abs(x: Any, name: str | None = None) -> Any:
    """The absolute value, elementwise; the modulus of complex numbers.

    Args:
        x: a Tensor or SparseTensor of type half, bfloat16, float32, float64, int8, int16, int32,
            int64, complex64 or complex128.
        name: a name for the operation.

    Returns:
        The same kind and shape as `x`; float32 for complex64, float64 for complex128.
    """
    with name_scope(name, "Abs", [x]) as scope:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, abs(x.values, name=scope), x.dense_shape)
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return get("ComplexAbs")(x, Tout=x.dtype.real_dtype, name=scope)
        return abs_op(x, name=scope)


@extensible
@explained(ELEMENTWISE)
def negative(x: Any, name: str | None = None) -> Any:
    """`-x`, elementwise, for a Tensor or SparseTensor of numbers."""
    return map_sparse(neg_op, x, name)


@extensible
@explained(ELEMENTWISE)
def sign(x: Any, name: str | None = None) -> Any:
    """-1, 0 or 1 by the sign of each element; `x / |x|` for complex numbers, 0 for 0.

    Takes a Tensor or SparseTensor of numbers and returns the same kind, type and shape.
    """
    return map_sparse(sign_op, x, name)


@extensible
@explained(ELEMENTWISE)
def reciprocal(x: Any, name: str | None = None) -> Tensor:
    """`1 / x`, elementwise; integers divide towards zero."""
    return reciprocal_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def square(x: Any, name: str | None = None) -> Any:
    """`x * x`, elementwise, for a Tensor or SparseTensor of numbers."""
    return map_sparse(square_op, x, name)


@extensible
@explained(ELEMENTWISE)
def sqrt(x: Any, name: str | None = None) -> Any:
    """The square root, elementwise, for a Tensor or SparseTensor of floats or complex numbers."""
    return map_sparse(sqrt_op, x, name)


@extensible
@explained(ELEMENTWISE)
def rsqrt(x: Any, name: str | None = None) -> Tensor:
    """`1 / sqrt(x)`, elementwise, for floats and complex numbers."""
    return rsqrt_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def exp(x: Any, name: str | None = None) -> Tensor:
    """E to the power `x`, elementwise, for floats and complex numbers."""
    return exp_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def expm1(x: Any, name: str | None = None) -> Tensor:
    """`exp(x) - 1`, elementwise, accurate near 0."""
    return expm1_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm, elementwise, for floats and complex numbers."""
    return log_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def log1p(x: Any, name: str | None = None) -> Tensor:
    """`log(1 + x)`, elementwise, accurate near 0."""
    return log1p_op(x, name=name)  # type: ignore[no-any-return]


@extensible
def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`1 / (1 + exp(-x))`, elementwise.

    Args:
        x: a tensor of floats or complex numbers.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`.
    """
    with name_scope(name, "Sigmoid", [x]) as scope:
        return sigmoid_op(convert_to_tensor(x, name="x"), name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`log(sigmoid(x))`, elementwise, computed as `-softplus(-x)`, for floats."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return neg_op(get("Softplus")(neg_op(x)), name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def tanh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic tangent, elementwise, for a Tensor or SparseTensor of floats or complex."""
    return map_sparse(tanh_op, x, name)


@extensible
def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest whole number, elementwise; ties go to the even one.

    Args:
        x: a tensor of floats, int32 or int64; integers come back as they are.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`.
    """
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else round_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def floor(x: Any, name: str | None = None) -> Tensor:
    """The largest whole number not above `x`, elementwise, for floats."""
    return floor_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def ceil(x: Any, name: str | None = None) -> Tensor:
    """The smallest whole number not below `x`, elementwise, for floats."""
    return ceil_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def rint(x: Any, name: str | None = None) -> Tensor:
    """The nearest whole number, the even one on a tie, elementwise, for floats."""
    return rint_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def is_nan(x: Any, name: str | None = None) -> Tensor:
    """Whether each element is NaN; a bool tensor of the shape of `x`, a tensor of floats."""
    return is_nan_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def is_inf(x: Any, name: str | None = None) -> Tensor:
    """Whether each element is infinite; a bool tensor of the shape of `x`, a tensor of floats."""
    return is_inf_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def is_finite(x: Any, name: str | None = None) -> Tensor:
    """Whether each element is neither infinite nor NaN; a bool tensor of the shape of `x`."""
    return is_finite_op(x, name=name)  # type: ignore[no-any-return]
