"""The derivative of a gamma sample by its shape parameter, at constant probability.

With P the distribution function and p the density, a sample x moves with its parameter a by
``-(dP/da) / p``.  Near the bulk P's power series is differentiated term by term; far in the upper
tail that would cancel, and the derivative is integrated over what lies beyond x instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, as_dtype

__all__ = ["table"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

table = KernelTable()

_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(48)
# Coefficients of the asymptotic series of the digamma function in 1 / x**2.
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760)


@table.binder("RandomGammaGrad", T=frozenset({as_dtype("float32"), as_dtype("float64")}))
def _random_gamma_grad(sig: NodeSig) -> Callable[[Array, Array], Array]:
    dtype = sig.attrs["T"].np

    def run(alpha: Array, sample: Array) -> Array:
        a, x = np.broadcast_arrays(np.asarray(alpha), np.asarray(sample))
        flat = _derivative(a.reshape(-1).astype(np.float64), x.reshape(-1).astype(np.float64))
        return flat.astype(dtype).reshape(a.shape)

    return run


def _derivative(a: Floats, x: Floats) -> Floats:
    out = np.full(a.shape, np.nan)
    valid = (a > 0) & (x >= 0)
    out[valid & (x == 0)] = 0.0
    tail = valid & (x > a + 6.0 * np.sqrt(np.abs(a)) + 12.0)
    bulk = valid & ~tail & (x > 0)
    out[bulk] = _from_series(a[bulk], x[bulk])
    out[tail] = _from_tail(a[tail], x[tail])
    return out


def _from_series(a: Floats, x: Floats) -> Floats:
    """P(a, x) = x**a exp(-x) sum x**n / gamma(a + n + 1), divided by the density x**(a-1) ..."""
    if not a.size:
        return a
    log_x, psi = np.log(x), _digamma(a + 1.0)
    term = x / a
    total = term * (log_x - psi)
    last = int(np.ceil(np.max(np.maximum(x - a, 0.0) + 12.0 * np.sqrt(x)))) + 60
    for n in range(1, last):
        term = term * (x / (a + n))
        psi = psi + 1.0 / (a + n)
        total = total + term * (log_x - psi)
    return -total


def _from_tail(a: Floats, x: Floats) -> Floats:
    """The integral of (t/x)**(a-1) exp(x-t) (log t - digamma(a)) over t > x."""
    decay = 1.0 - (a - 1.0) / x
    beyond = _NODES[None, :] / decay[:, None]
    grown = np.log1p(beyond / x[:, None])
    weight = np.exp((a - 1.0)[:, None] * (grown - beyond / x[:, None]))
    value = grown + (np.log(x) - _digamma(a))[:, None]
    return np.asarray((weight * value) @ _WEIGHTS / decay)


def _digamma(x: Floats) -> Floats:
    shift = np.zeros_like(x)
    y = x.copy()
    for _ in range(8):
        small = y < 8.0
        shift -= np.where(small, 1.0 / np.maximum(y, np.finfo(np.float64).tiny), 0.0)
        y = np.where(small, y + 1.0, y)
    square = 1.0 / (y * y)
    series = np.zeros_like(y)
    for coefficient in reversed(_DIGAMMA):
        series = (series + coefficient) * square
    return shift + np.log(y) - 0.5 / y + series
