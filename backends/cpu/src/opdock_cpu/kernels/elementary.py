"""Functions of one argument: NumPy's ufuncs, and the derivatives by a function's own result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import COMPLEX, FLOATS, INTS, NUMBERS, REALS, SIGNED, DType, KernelTable, NodeSig

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one
Unary = Callable[..., Array]

table = KernelTable()

_INEXACT = FLOATS | COMPLEX
_NARROW: Final = 2
# Below this size one call of a scalar loop beats several vectorized passes.
_SMALL: Final = 640

_UFUNCS: Final[tuple[tuple[str, np.ufunc, frozenset[DType]], ...]] = (
    ("Abs", np.absolute, FLOATS | SIGNED),
    ("Neg", np.negative, NUMBERS),
    ("Sign", np.sign, REALS),
    ("Square", np.square, NUMBERS),
    ("Sqrt", np.sqrt, _INEXACT),
    ("Exp", np.exp, _INEXACT),
    ("Expm1", np.expm1, _INEXACT),
    ("Log", np.log, _INEXACT),
    ("Log1p", np.log1p, _INEXACT),
    ("Tanh", np.tanh, _INEXACT),
    ("Sin", np.sin, _INEXACT),
    ("Cos", np.cos, _INEXACT),
    ("Tan", np.tan, _INEXACT),
    ("Asin", np.arcsin, _INEXACT),
    ("Acos", np.arccos, _INEXACT),
    ("Atan", np.arctan, _INEXACT),
    ("Sinh", np.sinh, _INEXACT),
    ("Cosh", np.cosh, _INEXACT),
    ("Asinh", np.arcsinh, _INEXACT),
    ("Acosh", np.arccosh, _INEXACT),
    ("Atanh", np.arctanh, _INEXACT),
    ("Floor", np.floor, FLOATS),
    ("Ceil", np.ceil, FLOATS),
    ("Rint", np.rint, FLOATS),
    ("Round", np.rint, _INEXACT),
    ("IsNan", np.isnan, FLOATS),
    ("IsInf", np.isinf, FLOATS),
    ("IsFinite", np.isfinite, FLOATS),
    ("Inv", np.reciprocal, _INEXACT),
    ("Reciprocal", np.reciprocal, _INEXACT),
)


def _bind_ufunc(ufunc: np.ufunc) -> Callable[[NodeSig], Unary]:
    """A binder that hands out the ufunc itself: a step is then one ufunc call."""

    def bind(sig: NodeSig) -> Unary:
        return ufunc

    bind.__qualname__ = f"numpy.{ufunc.__name__}"
    return bind


for _op, _ufunc, _types in _UFUNCS:
    table.binder(_op, T=_types, out=True)(_bind_ufunc(_ufunc))


def _reuse(value: Any) -> Any:
    """`value` as the place of the next result: None for the scalar that a 0-d call returns."""
    return value if isinstance(value, np.ndarray) else None


@table.binder("Round", T=INTS, out=True)
def _round_integer(sig: NodeSig) -> Unary:
    return np.positive


@table.binder("Rsqrt", T=_INEXACT, out=True)
def _rsqrt(sig: NodeSig) -> Unary:
    def run(x: Array, out: Array | None = None) -> Array:
        root = np.sqrt(x, out)
        return np.reciprocal(root, _reuse(root))

    return run


@table.binder("Sigmoid", T=_INEXACT, out=True)
def _sigmoid(sig: NodeSig) -> Unary:
    one = sig.out_dtypes[0].np.type(1)

    def run(x: Array, out: Array | None = None) -> Array:
        value = np.negative(x, out)
        place = _reuse(value)
        value = np.exp(value, place)
        value = np.add(value, one, place)
        return np.reciprocal(value, place)

    if sig.out_dtypes[0].is_complex or sig.out_dtypes[0].size == _NARROW:
        return run
    from scipy.special import expit

    def choose(x: Array, out: Array | None = None) -> Array:
        return expit(x, out) if x.size < _SMALL else run(x, out)

    return choose


# ---------------------------------------------------------------- derivatives by the result
# The result may be written over an input, so only the last call of each writes to `out`.
@table.binder("TanhGrad", T=FLOATS, out=True)
def _tanh_grad(sig: NodeSig) -> Unary:
    one = sig.out_dtypes[0].np.type(1)

    def run(y: Array, dy: Array, out: Array | None = None) -> Array:
        slope = np.square(y)
        slope = np.subtract(one, slope, _reuse(slope))
        return np.multiply(slope, dy, out)

    return run


@table.binder("SigmoidGrad", T=FLOATS, out=True)
def _sigmoid_grad(sig: NodeSig) -> Unary:
    one = sig.out_dtypes[0].np.type(1)

    def run(y: Array, dy: Array, out: Array | None = None) -> Array:
        slope = np.subtract(one, y)
        slope = np.multiply(slope, y, _reuse(slope))
        return np.multiply(slope, dy, out)

    return run


@table.binder("InvGrad", "ReciprocalGrad", T=FLOATS, out=True)
def _reciprocal_grad(sig: NodeSig) -> Unary:
    def run(y: Array, dy: Array, out: Array | None = None) -> Array:
        slope = np.square(y)
        slope = np.negative(slope, _reuse(slope))
        return np.multiply(slope, dy, out)

    return run


@table.binder("SqrtGrad", T=FLOATS, out=True)
def _sqrt_grad(sig: NodeSig) -> Unary:
    half = sig.out_dtypes[0].np.type(0.5)

    def run(y: Array, dy: Array, out: Array | None = None) -> Array:
        return np.divide(np.multiply(dy, half), y, out)

    return run


@table.binder("RsqrtGrad", T=FLOATS, out=True)
def _rsqrt_grad(sig: NodeSig) -> Unary:
    factor = sig.out_dtypes[0].np.type(-0.5)

    def run(y: Array, dy: Array, out: Array | None = None) -> Array:
        slope = np.square(y)
        place = _reuse(slope)
        slope = np.multiply(slope, y, place)
        slope = np.multiply(slope, factor, place)
        return np.multiply(slope, dy, out)

    return run
