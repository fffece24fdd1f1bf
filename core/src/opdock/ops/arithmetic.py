"""Elementwise arithmetic of two tensors, with broadcasting: sums, products, quotients, powers."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import PAIRWISE, explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.elementary import NUMBERS, conjugate, log_op, neg_op
from opdock.ops.registry import OpSpec, Traits, define_op, get
from opdock.ops.support.common_shapes import broadcast2
from opdock.ops.unbroadcast import unbroadcast, unbroadcast_pair

__all__ = [
    "add", "floor_div", "floormod", "maximum", "minimum", "mod", "multiply", "pow", "realdiv",
    "squared_difference", "subtract", "truncatediv", "truncatemod",
]  # fmt: skip

_MORE = (
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, "
    "complex128}"
)
_REALS = "T: {bfloat16, half, float, double, int32, int64}"
_MOD = "T: {int32, int64, bfloat16, half, float, double}"
_INEXACT = "T: {half, float, double, complex64, complex128}"
_SUMMABLE = (
    "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128"
)


def binary(op: str, attrs: str, expr: str, *, commutative: bool = False) -> OpSpec:
    """Defines `z = op(x, y)` with broadcasting."""
    spec = define_op(op, "x: T, y: T -> z: T", attrs, expr=expr, commutative=commutative)
    spec.shape(broadcast2)
    return spec


# ---------------------------------------------------------------- definitions
add_op = binary("Add", _SUMMABLE + ", string}", "x + y")
add_v2_op = define_op(
    "AddV2", "x: T, y: T -> z: T", _SUMMABLE + "}", commutative=True, aggregate=True, expr="x + y"
)
add_v2_op.shape(broadcast2)
sub_op = binary("Sub", _MORE, "x - y")
mul_op = binary("Mul", _MORE, "x * y", commutative=True)
mul_no_nan_op = binary("MulNoNan", _INEXACT, "where(y == 0, 0, x * y)")
div_op = binary("Div", _MORE, "x / y")
real_div_op = binary("RealDiv", _MORE, "x / y")
div_no_nan_op = binary("DivNoNan", _INEXACT, "where(y == 0, 0, x / y)")
truncate_div_op = binary("TruncateDiv", _MORE, "x / y")
floor_div_op = binary("FloorDiv", _MORE, "x // y")
floor_mod_op = binary("FloorMod", _MOD, "x % y")
truncate_mod_op = binary("TruncateMod", _MOD, "fmod(x, y)")
mod_op = binary("Mod", "T: {int32, int64, half, bfloat16, float, double}", "fmod(x, y)")
pow_op = binary(
    "Pow", "T: {bfloat16, float, half, double, int32, int64, complex64, complex128}", "x ** y"
)
maximum_op = binary("Maximum", _REALS, "max(x, y)")
minimum_op = binary("Minimum", _REALS, "min(x, y)")
for _op in (add_op, maximum_op, minimum_op):
    _op.declare(Traits(commutes=True))
squared_difference_op = binary(
    "SquaredDifference", NUMBERS, "(x - y) * conj(x - y)", commutative=True
)
xlogy_op = binary("Xlogy", _INEXACT, "where(x == 0, 0, x * log(y))")
xdivy_op = binary("Xdivy", _INEXACT, "where(x == 0, 0, x / y)")


# ---------------------------------------------------------------- gradients
@add_op.gradient
@add_v2_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return unbroadcast_pair(grad, grad, *op.inputs)


@sub_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return unbroadcast_pair(grad, neg_op(grad), *op.inputs)


@mul_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    return unbroadcast_pair(mul_op(grad, conjugate(y)), mul_op(conjugate(x), grad), x, y)


@mul_no_nan_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    return unbroadcast_pair(
        mul_no_nan_op(grad, conjugate(y)), mul_no_nan_op(conjugate(x), grad), x, y
    )


def _quotient_gradient(op: Operation, grad: Any, divide: OpSpec) -> list[Any]:
    x, y = op.inputs
    cx, cy = conjugate(x), conjugate(y)
    return unbroadcast_pair(
        divide(grad, cy), mul_op(grad, divide(divide(neg_op(cx), cy), cy)), x, y
    )


@div_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return _quotient_gradient(op, grad, div_op)


@real_div_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return _quotient_gradient(op, grad, real_div_op)


@div_no_nan_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return _quotient_gradient(op, grad, div_no_nan_op)


@floor_mod_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    return unbroadcast_pair(grad, mul_op(grad, neg_op(floor_div_op(x, y))), x, y)


floor_div_op.not_differentiable()
truncate_div_op.not_differentiable()


@truncate_mod_op.gradient
@mod_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    if x.dtype.is_integer:
        quotient = truncate_div_op(x, y)
    else:
        # Exact: x - mod(x, y) is a multiple of y.
        quotient = get("Rint")(real_div_op(sub_op(x, op.outputs[0]), y))
    return unbroadcast_pair(grad, mul_op(grad, neg_op(quotient)), x, y)


@pow_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    z = conjugate(op.outputs[0])
    cx, cy = conjugate(x), conjugate(y)
    grad_x = grad * cy * pow_op(cx, cy - 1)
    # log is wanted only where it exists: of negative reals it would turn the gradient to NaN.
    positive = cx > 0 if not cx.dtype.is_complex else get("NotEqual")(cx, 0)
    ones = get("OnesLike")(cx)
    logs = get("Select")(positive, log_op(get("Select")(positive, cx, ones)), get("ZerosLike")(cx))
    return unbroadcast_pair(grad_x, grad * z * logs, x, y)


def _extreme_gradient(op: Operation, grad: Any, compare: str) -> list[Any]:
    x, y = op.inputs
    zeros = get("ZerosLike")(grad)
    first = get(compare)(x, y)
    select = get("Select")
    return [
        unbroadcast(select(first, grad, zeros), x, y),
        unbroadcast(select(first, zeros, grad), y, x),
    ]


@maximum_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return _extreme_gradient(op, grad, "GreaterEqual")


@minimum_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    return _extreme_gradient(op, grad, "LessEqual")


@squared_difference_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    # The square of a complex modulus is real: only the real part of the gradient counts.
    twice = grad + conjugate(grad) if grad.dtype.is_complex else 2 * grad
    grad_x = mul_op(twice, sub_op(x, y))
    grads = unbroadcast_pair(grad_x, grad_x, x, y)
    return [grads[0], neg_op(grads[1])]


@xlogy_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    not_zero = get("Cast")(get("NotEqual")(x, 0), DstT=x.dtype.base_dtype)
    return unbroadcast_pair(
        grad * xlogy_op(conjugate(not_zero), conjugate(y)),
        grad * xdivy_op(conjugate(x), conjugate(y)),
        x, y,
    )  # fmt: skip


@xdivy_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    not_zero = get("Cast")(get("NotEqual")(x, 0), DstT=x.dtype.base_dtype)
    cx, cy = conjugate(x), conjugate(y)
    return unbroadcast_pair(
        grad * xdivy_op(conjugate(not_zero), cy),
        grad * xdivy_op(neg_op(cx), cy * cy),
        x, y,
    )  # fmt: skip


# ---------------------------------------------------------------- public functions
_DIVIDES = f"{PAIRWISE['raises']}\nInvalidArgumentError: an integer is divided by zero."


@extensible
def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x + y`, elementwise, with broadcasting. Strings are concatenated.

    Args:
        x: a tensor of numbers or strings.
        y: a tensor of the same type.
        name: a name for the operation.

    Returns:
        A tensor of that type in the broadcast shape.

    Raises:
        TypeError: the types differ.
        ValueError: the shapes do not broadcast (`InvalidArgumentError` at run time).
    """
    return add_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x - y`, elementwise, with broadcasting; types and errors as `tf.add`."""
    return sub_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x * y`, elementwise, with broadcasting; types and errors as `tf.add`."""
    return mul_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y`, elementwise, with broadcasting, for floats and complex numbers."""
    return real_div_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE, raises=_DIVIDES)
def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` of integers rounded towards zero, elementwise, with broadcasting."""
    return truncate_div_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE, raises=_DIVIDES)
def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`floor(x / y)`, elementwise, with broadcasting, for real numbers."""
    return floor_div_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of `floor(x / y)`, with the sign of `y`, elementwise, with broadcasting.

    Args:
        x: a tensor of int32, int64 or floats.
        y: a tensor of the same type.
        name: a name for the operation.

    Raises:
        tf.errors.InvalidArgumentError: an integer is divided by zero.
    """
    return floor_mod_op(x, y, name=name)  # type: ignore[no-any-return]


mod = floormod


@extensible
@explained(PAIRWISE)
def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of division towards zero, with the sign of `x`; otherwise as `tf.floormod`."""
    return truncate_mod_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x` to the power `y`, elementwise, with broadcasting.

    Args:
        x: a tensor of floats, complex numbers, int32 or int64.
        y: a tensor of the same type.
        name: a name for the operation.

    Returns:
        A tensor of that type in the broadcast shape.

    Raises:
        tf.errors.InvalidArgumentError: an integer is raised to a negative power.
    """
    with name_scope(name, "Pow", [x]) as scope:
        return pow_op(x, y, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of `x` and `y`, elementwise, with broadcasting; NaN where either is NaN."""
    return maximum_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of `x` and `y`, elementwise, with broadcasting; NaN where either is NaN."""
    return minimum_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`(x - y) * conj(x - y)`, elementwise, with broadcasting."""
    return squared_difference_op(x, y, name=name)  # type: ignore[no-any-return]
