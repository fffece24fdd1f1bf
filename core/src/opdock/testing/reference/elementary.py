"""What the functions of one argument compute, in NumPy's own words or in a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _simple(op: str, fn: Callable[[Array], Any]) -> None:
    reference(op)(lambda attrs, x: fn(x))


def _whole(x: Array) -> Any:
    """The nearest whole number, the even one on a tie; complex numbers part by part."""
    if x.dtype.kind == "c":
        return _whole(x.real) + 1j * _whole(x.imag)
    below = np.floor(x)
    gap = x - below
    up = (gap > 0.5) | ((gap == 0.5) & (below % 2 == 1))
    return np.where(np.isfinite(x), below + up, x)


def _inverse(x: Array) -> Any:
    """`1 / x`; for integers what is left of it, rounded towards zero."""
    return np.where(np.abs(x) == 1, x, 0) if x.dtype.kind == "i" else 1 / x


def _sign(x: Any) -> Any:
    if np.asarray(x).dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


_simple("Abs", np.abs)
_simple("Neg", lambda x: -x)
_simple("Sign", _sign)
_simple("Inv", _inverse)
_simple("Reciprocal", _inverse)
_simple("Square", lambda x: x * x)
_simple("Sqrt", np.sqrt)
_simple("Rsqrt", lambda x: 1 / np.sqrt(x))
_simple("Exp", np.exp)
_simple("Expm1", np.expm1)
_simple("Log", np.log)
_simple("Log1p", np.log1p)
_simple("Sigmoid", lambda x: 1 / (1 + np.exp(-x)))
_simple("Tanh", np.tanh)
_simple("Round", lambda x: x if x.dtype.kind == "i" else _whole(x))
_simple("Rint", _whole)
_simple("Floor", np.floor)
_simple("Ceil", lambda x: -np.floor(-x))
_simple("IsNan", lambda x: x != x)  # noqa: PLR0124 - NaN is what differs from itself
_simple("IsInf", lambda x: np.abs(x) == np.inf)
_simple("IsFinite", lambda x: np.abs(x) < np.inf)
_simple("Sin", np.sin)
_simple("Cos", np.cos)
_simple("Tan", lambda x: np.sin(x) / np.cos(x))
_simple("Asin", np.arcsin)
_simple("Acos", np.arccos)
_simple("Atan", np.arctan)
_simple("Sinh", lambda x: (np.exp(x) - np.exp(-x)) / 2)
_simple("Cosh", lambda x: (np.exp(x) + np.exp(-x)) / 2)
_simple("Asinh", np.arcsinh)
_simple("Acosh", np.arccosh)
_simple("Atanh", np.arctanh)


# Derivatives by the function's own result y, times the incoming derivative dy.
@reference("InvGrad", "ReciprocalGrad")
def reciprocal_grad(attrs: Attrs, y: Array, dy: Array) -> Any:
    """The derivative of 1 / x is -y * y."""
    return np.where(dy == 0, 0, -dy * np.conj(y) ** 2)


@reference("SqrtGrad")
def sqrt_grad(attrs: Attrs, y: Array, dy: Array) -> Any:
    """The derivative of sqrt(x) is 1 / (2 y)."""
    return np.where(dy == 0, 0, dy / (2 * np.conj(y)))


@reference("RsqrtGrad")
def rsqrt_grad(attrs: Attrs, y: Array, dy: Array) -> Any:
    """The derivative of x ** -1/2 is -y ** 3 / 2."""
    return np.where(dy == 0, 0, -dy * np.conj(y) ** 3 / 2)


@reference("SigmoidGrad")
def sigmoid_grad(attrs: Attrs, y: Array, dy: Array) -> Any:
    """The derivative of the logistic function is y (1 - y)."""
    return dy * np.conj(y * (1 - y))


@reference("TanhGrad")
def tanh_grad(attrs: Attrs, y: Array, dy: Array) -> Any:
    """The derivative of tanh is 1 - y * y."""
    return dy * np.conj(1 - y * y)
