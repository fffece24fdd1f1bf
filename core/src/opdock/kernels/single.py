"""Special functions of single precision and less, over any array namespace, by fits of their own.

Each has the least largest relative error that so many terms allow.
"""

from __future__ import annotations

import math
from typing import Any, Final

Array = Any

# Polynomials for single precision, lowest power first: erf(x) / x of x * x up to 1,
# -log(erfc(x)) / x of x from 1 to 4, exp(x * x) * erfc(x) / z of z = 1 / (x + 2) from x = 0.5 to
# 10.5, erfinv(x) / x of w = -log(1 - x * x), of w - 2.5 up to 5 and of sqrt(w) - 3 above, and
# (1 / x - pi * cot(pi * x)) / x of x * x up to 0.25.
_ERF: Final = (
    1.1283791657267068, -0.37612625824214885, 0.11283585148412759, -0.02685381192690387,
    0.0051883276697588885, -0.0008010193484341364, 7.853860886094732e-05,
)  # fmt: skip
_LOG_ERFC: Final = (
    1.12869433, 0.63496954, 0.10653085, -0.0240100556, 0.00375747059, -0.000350590479,
    1.39622857e-05,
)  # fmt: skip
_ERFCX: Final = (
    0.564155157, 1.13020349, 1.93342262, 3.34176165, -1.34934413, 19.2800524, -64.8956007,
    75.0606657, -30.9487643,
)  # fmt: skip
_ERFINV: Final = (
    1.50140936, 0.246640286, -0.00417738678, -0.00125274188, 0.000218344438, -4.96334542e-06,
    -3.46270451e-06, 4.66170131e-07, 2.3232624e-08, -8.79101783e-09,
)  # fmt: skip
_ERFINV_TAIL: Final = (
    2.83297682, 1.00167482, 0.00944438624, -0.00763503698, 0.0056945165, -0.003607934,
    0.00146568267, -3.62081149e-05, -0.000294174693, 0.000100987254,
)  # fmt: skip
_COTANGENT: Final = (
    3.28986836, 2.1646063, 2.03651856, 1.97303967, 2.335438, 0.380180733, 5.63121533,
)  # fmt: skip


def polynomial(coefficients: tuple[float, ...], t: Array) -> Array:
    """The sum of powers of `t`, lowest first, by Horner's rule."""
    *rest, value = coefficients
    value = t * value + rest.pop()
    for c in reversed(rest):
        value = value * t + c
    return value


def erf(xp: Any, x: Array) -> Array:
    """The error function for single precision and less."""
    size = xp.abs(x)
    near = x * polynomial(_ERF, xp.minimum(x * x, xp.ones_like(x)))
    far = xp.minimum(size, xp.full_like(x, 4.0))  # where it is 1
    far = 1 - xp.exp(-far * polynomial(_LOG_ERFC, far))
    return xp.where(size <= 1, near, xp.where(x < 0, -far, far))


def erfc(xp: Any, x: Array) -> Array:
    """`1 - erf(x)` for single precision and less."""
    size = xp.minimum(xp.abs(x), xp.full_like(x, 10.5))  # where it is 0
    z = 1 / (size + 2)
    far = xp.exp(-size * size) * (z * polynomial(_ERFCX, z))
    low = xp.minimum(size, xp.full_like(x, 0.5))
    near = 1 - low * polynomial(_ERF, low * low)
    tail = xp.where(size <= 0.5, near, far)
    return xp.where(x < 0, 2 - tail, tail)


def erfinv(xp: Any, p: Array) -> Array:
    """The inverse of `erf` for single precision and less."""
    size = xp.abs(p)
    inside = xp.where(size < 1, p, xp.zeros_like(p))
    w = -xp.log((1 - inside) * (1 + inside))
    middle = polynomial(_ERFINV, xp.minimum(w, xp.full_like(w, 5.0)) - 2.5)
    tail = polynomial(_ERFINV_TAIL, xp.sqrt(xp.maximum(w, xp.full_like(w, 5.0))) - 3)
    value = inside * xp.where(w < 5, middle, tail)
    end = xp.where(p < 0, xp.full_like(p, -math.inf), xp.full_like(p, math.inf))
    end = xp.where(size == 1, end, xp.full_like(p, math.nan))
    return xp.where(size < 1, value, end)


def cotangent(x: Array) -> Array:
    """Pi times the cotangent of pi times `x`, which is not 0 and at most a half."""
    return 1 / x - x * polynomial(_COTANGENT, x * x)
