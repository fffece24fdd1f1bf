"""Special functions: error functions, gamma and beta functions, zeta, Bessel functions."""

from __future__ import annotations

import math
from typing import Any

from opdock import shapes
from opdock.docstrings import ELEMENTWISE, explained
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.elementary import (
    REAL,
    abs,
    abs_op,
    exp_op,
    log1p_op,
    log_op,
    map_sparse,
    neg_op,
    reciprocal_op,
    sign_op,
    square_op,
    unary,
)  # fmt: skip
from opdock.ops.registry import OpSpec, ShapeSig, define_op, get
from opdock.ops.support.common_shapes import broadcast2
from opdock.ops.unbroadcast import unbroadcast, unbroadcast_pair
from opdock.shapes import Shape

__all__ = [
    "betainc", "digamma", "erf", "erfc", "igamma", "igammac", "lbeta", "lgamma", "polygamma",
    "zeta",
]  # fmt: skip

_WIDE = "T: {float, double}"


def _binary(op: str, first: str, second: str, expr: str) -> OpSpec:
    spec = define_op(op, f"{first}: T, {second}: T -> z: T", _WIDE, expr=expr)
    spec.shape(broadcast2)
    return spec


# ---------------------------------------------------------------- definitions
erf_op = unary("Erf", REAL, "erf(x)")
erfc_op = unary("Erfc", REAL, "erfc(x)")
erfinv_op = unary("Erfinv", REAL, "erfinv(x)")
ndtri_op = unary("Ndtri", REAL, "ndtri(x)")
lgamma_op = unary("Lgamma", REAL, "lgamma(x)")
digamma_op = unary("Digamma", REAL, "digamma(x)")
bessel_i0e_op = unary("BesselI0e", REAL, "i0e(x)")
bessel_i1e_op = unary("BesselI1e", REAL, "i1e(x)")
igamma_op = _binary("Igamma", "a", "x", "igamma(a, x)")
igammac_op = _binary("Igammac", "a", "x", "igammac(a, x)")
igamma_grad_a_op = _binary("IgammaGradA", "a", "x", "igamma_grad_a(a, x)").not_differentiable()
zeta_op = _binary("Zeta", "x", "q", "zeta(x, q)")
polygamma_op = _binary("Polygamma", "a", "x", "polygamma(a, x)")
next_after_op = define_op(
    "NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = DT_FLOAT",
    expr="nextafter(x1, x2)",
)  # fmt: skip
next_after_op.shape(broadcast2)
betainc_op = define_op("Betainc", "a: T, b: T, x: T -> z: T", _WIDE, expr="betainc(a, b, x)")


@betainc_op.shape
def _(sig: ShapeSig) -> Shape:
    # Scalars broadcast; everything else has one shape.
    others = [s for s in sig.shapes if s != ()]
    out: Shape = None
    for shape in others:
        try:
            out = shapes.merge(out, shape)
        except ValueError as e:
            raise ValueError(f"Shapes of a, b and x are inconsistent: {e}") from None
    return () if not others else out


# ---------------------------------------------------------------- gradients
def _scaled_gaussian(grad: Any, x: Any, scale: float, sign: float) -> Any:
    """`grad * scale * exp(sign * x * x)`."""
    exponent = square_op(x)
    return scale * grad * exp_op(neg_op(exponent) if sign < 0 else exponent)


@next_after_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x1, x2 = op.inputs
    return [unbroadcast(grad, x1, x2), get("ZerosLike")(x2)]


@erf_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return _scaled_gaussian(grad, op.inputs[0], 2 / math.sqrt(math.pi), -1)


@erfc_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return _scaled_gaussian(grad, op.inputs[0], -2 / math.sqrt(math.pi), -1)


@erfinv_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return _scaled_gaussian(grad, op.outputs[0], math.sqrt(math.pi) / 2, 1)


@ndtri_op.gradient
def _(op: Operation, grad: Any) -> Any:
    y: Any = op.outputs[0]
    half = y * math.sqrt(0.5)
    return _scaled_gaussian(grad, half, math.sqrt(2 * math.pi), 1)


@lgamma_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return grad * digamma_op(op.inputs[0])


@digamma_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = op.inputs[0]
    return grad * polygamma_op(constant(1, dtype=x.dtype.base_dtype), x)


@bessel_i0e_op.gradient
def _(op: Operation, grad: Any) -> Any:
    x = op.inputs[0]
    return grad * (bessel_i1e_op(x) - sign_op(x) * op.outputs[0])


@bessel_i1e_op.gradient
def _(op: Operation, grad: Any) -> Any:
    # The formula divides by x, its limit at 0 is one half.
    x, y = op.inputs[0], op.outputs[0]
    tiny = 2.0 ** {2: -7, 4: -23, 8: -52}[x.dtype.size]
    select, like = get("Select"), get("OnesLike")(x)
    normal = abs_op(x) > tiny
    safe = select(normal, x, tiny * like)
    slope = bessel_i0e_op(safe) - y * (sign_op(safe) + reciprocal_op(safe))
    return grad * select(normal, slope, 0.5 * like)


def _gamma_density(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) with respect to x."""
    return exp_op(neg_op(x) + (a - 1) * log_op(x) - lgamma_op(a))


@igamma_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    a, x = op.inputs
    return unbroadcast_pair(igamma_grad_a_op(a, x) * grad, _gamma_density(a, x) * grad, a, x)


@igammac_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    a, x = op.inputs
    down = neg_op(grad)
    return unbroadcast_pair(igamma_grad_a_op(a, x) * down, _gamma_density(a, x) * down, a, x)


@zeta_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    x: Any
    x, q = op.inputs
    return [None, unbroadcast(neg_op(x) * zeta_op(x + 1, q) * grad, q, x)]


@polygamma_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    n: Any
    n, x = op.inputs
    return [None, unbroadcast(polygamma_op(n + 1, x) * grad, x, n)]


@betainc_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    a: Any
    b: Any
    a, b, x = op.inputs
    log_beta = lgamma_op(a) + lgamma_op(b) - lgamma_op(a + b)
    density = exp_op((b - 1) * log1p_op(neg_op(x)) + (a - 1) * log_op(x) - log_beta)
    return [None, None, unbroadcast(density * grad, x, op.outputs[0])]


# ---------------------------------------------------------------- public functions
@extensible
@explained(ELEMENTWISE)
def erf(x: Any, name: str | None = None) -> Any:
    """The error function, elementwise, for a Tensor or SparseTensor of floats."""
    return map_sparse(erf_op, x, name)


@extensible
@explained(ELEMENTWISE)
def erfc(x: Any, name: str | None = None) -> Tensor:
    """The complementary error function `1 - erf(x)`, elementwise, for floats."""
    return erfc_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def erfinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse error function, elementwise, for floats; infinite at -1 and 1, NaN outside."""
    with name_scope(name, "erfinv", [x]):
        return erfinv_op(x)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def ndtri(x: Any, name: str | None = None) -> Tensor:
    """The quantile function of the standard normal distribution, elementwise, for floats."""
    with name_scope(name, "ndtri", [x]):
        return ndtri_op(x)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def lgamma(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function, elementwise, for floats."""
    return lgamma_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def digamma(x: Any, name: str | None = None) -> Tensor:
    """The derivative of `lgamma`, elementwise, for floats."""
    return digamma_op(x, name=name)  # type: ignore[no-any-return]


@extensible
def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The derivative of order `a` of `digamma`, elementwise, with broadcasting.

    Args:
        a: a float32 or float64 tensor of whole numbers of at least 0.
        x: a tensor of the same type.
        name: a name for the operation.
    """
    return polygamma_op(a, x, name=name)  # type: ignore[no-any-return]


_WORDS = {
    "name": "a name for the operation.",
    "a": "a float32 or float64 tensor, above 0.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, x="a float32 or float64 tensor, above 1.", q="a tensor of the same type.")
def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function, the sum of `(q + n) ** -x` over n >= 0, with broadcasting."""
    return zeta_op(x, q, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, x="a tensor of the same type, at least 0.")
def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized lower incomplete gamma function P(a, x), with broadcasting."""
    return igamma_op(a, x, name=name)  # type: ignore[no-any-return]


@extensible
def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized upper incomplete gamma function `1 - igamma(a, x)`; as `tf.igamma`."""
    return igammac_op(a, x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    b="a tensor of the same type, above 0.",
    x="a tensor of the same type in [0, 1].",
    returns="A tensor of the arguments' common shape; scalar arguments broadcast.",
)
def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function I_x(a, b)."""
    return betainc_op(a, b, x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, x="a tensor of floats of rank n + 1.", returns="A tensor of rank n.")
def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the multivariate beta function of the last axis."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        total = get("Sum")
        return total(lgamma_op(x), [-1]) - lgamma_op(total(x, [-1]))  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def bessel_i0e(x: Any, name: str | None = None) -> Any:
    """`exp(-|x|)` times the modified Bessel function of order 0, for a Tensor or SparseTensor."""
    return map_sparse(bessel_i0e_op, x, name)


@extensible
@explained(ELEMENTWISE)
def bessel_i1e(x: Any, name: str | None = None) -> Any:
    """`exp(-|x|)` times the modified Bessel function of order 1, for a Tensor or SparseTensor."""
    return map_sparse(bessel_i1e_op, x, name)


@extensible
@explained(ELEMENTWISE)
def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0, elementwise, for floats."""
    with name_scope(name, "bessel_i0", [x]):
        x = convert_to_tensor(x, name="x")
        return exp_op(abs(x)) * bessel_i0e_op(x)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1, elementwise, for floats."""
    with name_scope(name, "bessel_i1", [x]):
        x = convert_to_tensor(x, name="x")
        return exp_op(abs(x)) * bessel_i1e_op(x)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, x1="a float32 or float64 tensor.", x2="a tensor of the same type.")
def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next representable number after `x1` towards `x2`, elementwise, with broadcasting."""
    return next_after_op(x1, x2, name=name)  # type: ignore[no-any-return]
