"""What the special functions are: series, integrals and bisection, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _simple(op: str, fn: Callable[..., float]) -> None:
    """Registers `fn` of scalars as the oracle of an op that broadcasts its arguments."""

    def apply(attrs: Attrs, *inputs: Array) -> Array:
        arrays = np.broadcast_arrays(*inputs)
        rows = zip(*(a.ravel().tolist() for a in arrays), strict=True)
        return np.array([fn(*row) for row in rows], np.float64).reshape(arrays[0].shape)

    reference(op)(apply)


def _is_pole(x: float) -> bool:
    return x <= 0 and x == math.floor(x)


def lgamma(x: float) -> float:
    """Log |gamma(x)|, infinite at the poles."""
    if math.isnan(x):
        return x
    return math.inf if math.isinf(x) or _is_pole(x) else math.lgamma(x)


def digamma(x: float) -> float:
    """Shift up by the recurrence, then the asymptotic series."""
    if math.isnan(x) or math.isinf(x):
        return x if x != -math.inf else math.nan
    if _is_pole(x):
        return math.nan
    total = 0.0
    while x < 20:
        total -= 1 / x
        x += 1
    series = sum(c / x ** (2 * k) for k, c in enumerate((1 / 12, -1 / 120, 1 / 252, -1 / 240), 1))
    return total + math.log(x) - 1 / (2 * x) - series


def _bisect(fn: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a growing function."""
    for _ in range(200):
        middle = (low + high) / 2
        if fn(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def erfinv(p: float) -> float:
    """The inverse of erf, by bisection on the tail."""
    if not -1 < p < 1:
        return math.copysign(math.inf, p) if abs(p) == 1 else math.nan
    if p < 0:
        return -erfinv(-p)
    if p < 0.5:
        return _bisect(lambda x: math.erf(x) - p, 0.0, 1.0)
    return _bisect(lambda x: (1 - p) - math.erfc(x), 0.0, 30.0)


def ndtri(p: float) -> float:
    """The inverse of the normal distribution function, by bisection."""
    if not 0 < p < 1:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    return _bisect(lambda x: math.erfc(-x / math.sqrt(2)) / 2 - p, -40.0, 40.0)


def _bessel(x: float, order: int) -> float:
    """exp(-|x|) I_n(x) as the mean of exp(|x| (cos t - 1)) cos(n t): exact for enough angles."""
    angles = 2 * np.pi * np.arange(512) / 512
    mean = float(np.mean(np.exp(abs(x) * (np.cos(angles) - 1)) * np.cos(order * angles)))
    return -mean if order and x < 0 else mean


def igamma(a: float, x: float) -> float:
    """P(a, x) by its power series."""
    if not (a > 0 and x >= 0):
        return math.nan
    if x == 0 or math.isinf(x):
        return float(x > 0)
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    total, n = 0.0, a
    while term > 1e-18 * total or n < x:
        total += term
        n += 1
        term *= x / n
    return total


def igamma_grad_a(a: float, x: float) -> float:
    """The same series, each term differentiated."""
    if not (a > 0 and x >= 0):
        return math.nan
    if x == 0:
        return 0.0
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    total, n = 0.0, a
    while term > 1e-18 or n < x:
        total += term * (math.log(x) - digamma(n + 1))
        n += 1
        term *= x / n
    return total


def zeta(x: float, q: float) -> float:
    """The sum of its first terms, and the tail by Euler and Maclaurin."""
    if not x > 1:
        return math.inf if x == 1 else math.nan
    if _is_pole(q):
        return math.inf
    if q <= 0 and x != math.floor(x):
        return math.nan
    n = max(30, math.ceil(30 - q))
    end = q + n
    total = math.fsum(math.pow(q + k, -x) for k in range(n))
    total += math.pow(end, 1 - x) / (x - 1) + math.pow(end, -x) / 2
    total += x * math.pow(end, -x - 1) / 12
    return total - x * (x + 1) * (x + 2) * math.pow(end, -x - 3) / 720


def polygamma(n: float, x: float) -> float:
    """The n-th derivative of digamma, as a zeta function."""
    if n < 0 or n != math.floor(n):
        return math.nan
    if n == 0:
        return digamma(x)
    sign = 1 if n % 2 == 1 else -1
    return sign * math.gamma(n + 1) * zeta(n + 1, x)


def betainc(a: float, b: float, x: float) -> float:
    """I_x(a, b) by its power series, on the side where that converges fast."""
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        return math.nan
    if x in (0, 1):
        return x
    if x > 0.5:
        return 1 - betainc(b, a, 1 - x)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    term = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    total, n = 0.0, 0
    while term > 1e-18 * total or n < 10:
        total += term
        term *= (a + b + n) / (a + 1 + n) * x
        n += 1
    return total


_simple("Erf", math.erf)
_simple("Erfc", math.erfc)
_simple("Erfinv", erfinv)
_simple("Ndtri", ndtri)
_simple("Lgamma", lgamma)
_simple("Digamma", digamma)
_simple("BesselI0e", lambda x: _bessel(x, 0))
_simple("BesselI1e", lambda x: _bessel(x, 1))
_simple("Igamma", igamma)
_simple("Igammac", lambda a, x: 1 - igamma(a, x))
_simple("IgammaGradA", igamma_grad_a)
_simple("Zeta", zeta)
_simple("Polygamma", polygamma)
_simple("Betainc", betainc)
