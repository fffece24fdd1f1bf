"""Special functions, from `scipy.special`."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import FLOATS, KernelTable, NodeSig, dtypes
from opdock_cpu import gammas
from opdock_cpu.halves import converted, widened
from opdock_cpu.portable import plainly, portable_kernel

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one
Function = Callable[..., Array]

table = KernelTable()

_MANY: Final = 1 << 8
"""Elements of which generated loops make the results."""
_SOME: Final = 1 << 14
"""Elements that they are given at a time."""
_NARROW: Final = 2  # bytes: SciPy has no loops for half precision
_UFUNCS: Final = {
    "Erf": "erf",
    "Erfc": "erfc",
    "Erfinv": "erfinv",
    "Ndtri": "ndtri",
    "BesselI0e": "i0e",
    "BesselI1e": "i1e",
}


def _scipy(name: str) -> Any:
    # SciPy takes long to import, and most programs use none of these functions.
    return getattr(importlib.import_module("scipy.special"), name)


def _bind_ufunc(name: str) -> Callable[[NodeSig], Function]:
    def bind(sig: NodeSig) -> Function:
        ufunc: Function = _scipy(name)
        dtype = sig.out_dtypes[0].np
        if sig.out_dtypes[0].size == _NARROW:
            return _widened(ufunc, dtype)
        return ufunc

    bind.__qualname__ = f"scipy.special.{name}"
    return bind


def _widened(function: Function, dtype: np.dtype[Any]) -> Function:
    """`function` in float32, rounded to `dtype`."""

    def run(*args: Any) -> Array:
        value = function(*map(widened, args[:-1]), None)
        out: Array | None = args[-1]
        return converted(value, dtype, out)

    return run


for _op, _name in _UFUNCS.items():
    table.binder(_op, T=FLOATS, out=True)(_bind_ufunc(_name))


def _bind_except(name: str, argument: float, result: float) -> Callable[[NodeSig], Function]:
    """A binder for SciPy's function with another result at one argument."""

    def bind(sig: NodeSig) -> Function:
        ufunc, dtype = _scipy(name), sig.out_dtypes[0].np

        def run(x: Array, out: Array | None = None) -> Array:
            there = np.equal(x, argument)
            value = ufunc(x, out)
            if isinstance(value, np.ndarray):
                np.copyto(value, result, where=there)
                return value
            return value.dtype.type(result) if there else value

        return _widened(run, dtype) if sig.out_dtypes[0].size == _NARROW else run

    bind.__qualname__ = f"scipy.special.{name}"
    return bind


# SciPy gives the one-sided limit of digamma at 0, where TF has no value; and log gamma of minus
# infinity is the limit of its poles, which are all positive.
_bind_digamma = _bind_except("psi", 0.0, np.nan)
_bind_log_gamma = _bind_except("gammaln", -np.inf, np.inf)


# ---------------------------------------------------------------- by generated loops
def _looped(
    sig: NodeSig, plain: Function, loops: Callable[..., np.ndarray[Any, Any] | None],
    many: int = _MANY,
) -> Function:  # fmt: skip
    """`plain`, or what loops give in double precision, of many elements of 32 bits or 16.

    Loops get some elements at a time, so that what they work in stays in the cache. Both may take
    a buffer for the result behind their arguments; loops may give None. From so `many` elements on
    they are quicker.
    """
    if sig.out_dtypes[0] not in (dtypes.float32, dtypes.float16):
        return plain
    dtype = sig.out_dtypes[0].np

    def run(*args: Any) -> Array:
        *inputs, out = args
        try:
            shape = np.broadcast_shapes(*map(np.shape, inputs))
        except ValueError:
            return plain(*args)  # which says so
        count = math.prod(shape)
        if count < many:
            return plain(*args)
        given = [_flat(x, shape) for x in inputs]
        found = np.empty(shape, dtype) if out is None else out
        flat = found.reshape(-1)
        for start in range(0, count, _SOME):
            some = slice(start, start + _SOME)
            values = loops(*(x[some] if x.ndim else x for x in given))
            if values is None:
                return plain(*args)
            converted(values, dtype, flat[some])
        return found

    return run


def _flat(x: Array, shape: tuple[int, ...]) -> Array:
    """The elements that go with those of a result in a row; a single one as it is."""
    if np.size(x) == 1:
        return np.reshape(x, ())
    return np.broadcast_to(x, shape).reshape(-1)


def _incomplete(sig: NodeSig, name: str, upper: bool) -> Function:
    plain, other = _bind_ufunc(name)(sig), _scipy(name)
    return _looped(sig, plain, lambda a, x: gammas.gamma_of(a, x, upper, other))


@table.binder("Lgamma", T=FLOATS, out=True)
def _lgamma(sig: NodeSig) -> Function:
    plain = _bind_log_gamma(sig)
    return _looped(sig, plain, lambda x: gammas.log_gammas(x, plain))


@table.binder("Digamma", T=FLOATS, out=True)
def _digamma(sig: NodeSig) -> Function:
    plain = _bind_digamma(sig)
    return _looped(sig, plain, lambda x: gammas.digammas(x, plain))


@table.binder("Betainc", T=FLOATS, out=True)
def _betainc(sig: NodeSig) -> Function:
    plain, other = _bind_ufunc("betainc")(sig), _scipy("betainc")
    return _looped(sig, plain, lambda a, b, x: gammas.beta_of(a, b, x, other))


@table.binder("Igamma", T=FLOATS, out=True)
def _igamma(sig: NodeSig) -> Function:
    return _incomplete(sig, "gammainc", upper=False)


@table.binder("Igammac", T=FLOATS, out=True)
def _igammac(sig: NodeSig) -> Function:
    return _incomplete(sig, "gammaincc", upper=True)


@table.binder("IgammaGradA", T={dtypes.float32}, out=True)
def _igamma_grad_a(sig: NodeSig) -> Function:
    return _looped(sig, portable_kernel(sig, out=True), gammas.gamma_slope, many=1)


@table.binder("Zeta", T=FLOATS, out=True)
def _zeta(sig: NodeSig) -> Function:
    plain = _bind_ufunc("zeta")(sig)
    return _looped(sig, plain, lambda s, q: gammas.zeta(s, q, _scipy("zeta")))


@table.binder("Polygamma", T=FLOATS, out=True)
def _polygamma(sig: NodeSig) -> Function:
    gamma, psi, zeta = _scipy("gamma"), _scipy("psi"), _scipy("zeta")
    dtype = sig.out_dtypes[0].np

    def exact(n: Array, x: Array) -> Array:
        n, x = np.asarray(n, np.float64), np.asarray(x, np.float64)
        order = np.where(n > 0, n, 1.0)
        sign = np.where(np.fmod(order, 2.0) == 1.0, 1.0, -1.0)
        value = np.where(n == 0, psi(x), sign * gamma(order + 1.0) * zeta(order + 1.0, x))
        valid = (n >= 0) & (n == np.floor(n))
        return np.where(valid, value, np.nan)

    plain = plainly(lambda n, x: exact(n, x).astype(dtype))
    return _looped(sig, plain, lambda n, x: gammas.polygamma(n, x, exact))
