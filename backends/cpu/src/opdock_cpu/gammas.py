"""The incomplete gamma and beta functions, derivatives and zeta, for single precision.

The series and fractions are those of core's portable kernels, summed in double precision until what
is left does not count in single. A turn of a loop computes a few elements beside each other, each
step for all of them, so that LLVM makes a vector of them; it goes on while one of them has to.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, floor, log, log1p
from typing import Any, Final

import numpy as np

from opdock.plugin import codegen
from opdock_cpu.jit.looped import Array, Looped, double
from opdock_cpu.slopes import ENOUGH as _ENOUGH
from opdock_cpu.slopes import MOST as _MOST
from opdock_cpu.slopes import SHIFTS as _SHIFTS
from opdock_cpu.slopes import WORK as _WORK
from opdock_cpu.slopes import psi as _psi
from opdock_cpu.slopes import slope_sums

__all__ = [
    "beta_of", "digammas", "gamma_of", "gamma_slope", "log_gammas", "polygamma", "tail_integral",
    "zeta",
]  # fmt: skip

_LANES: Final = 8
_EXACT: Final = 1e-12
"""The same of one that is subtracted from one, which costs digits."""
_TINY: Final = 1e-290
_BROAD: Final = 1e4
"""Shapes of gamma distributions from which these take hundreds of terms."""
_NARROW: Final = 1e-3
"""A shape up to which Q may be as small as the shape is."""
_GREAT: Final = 1e30
"""Arguments of gamma whose square still is a number of double precision, by far."""
_STIRLING: Final = codegen.SERIES["stirling"][::-1]
_PARTS: Final = tuple(1.0 / bottom for bottom in codegen.SERIES["euler_maclaurin"])
_HALF_LOG: Final = 0.9189385332046727
"""Half of the logarithm of two pi."""
_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(48)
_COUNTED: Final = int(np.count_nonzero(_WEIGHTS > 1e-13))
"""Weights that count beside their sum, which is one; what they weigh does not grow beyond."""
_LARGEST: Final = 128.0
"""Exponents of zeta from which its terms might not be numbers of double precision."""


# ---------------------------------------------------------------- of one positive number
def log_gamma(x: float) -> float:
    product = x - x + 1.0
    for k in _SHIFTS:
        product = product * (x + k) if x < 8.0 else product
    z = x + 8.0 if x < 8.0 else x
    inverse = 1.0 / z
    squared = inverse * inverse
    series = z - z
    for c in _STIRLING:
        series = series * squared + c
    return (z - 0.5) * log(z) - z + _HALF_LOG + series * inverse - log(product)


def _nonzero(x: float) -> float:
    return double(_TINY) if abs(x) < _TINY else x


# ---------------------------------------------------------------- loops
def _series(
    begin: int, end: int, out: Array, term: Array, a: Array, x: Array, enough: float
) -> None:
    """P(a, x) by its power series, good for x below a + 1."""
    for turn in range(begin, end):
        first = turn * _LANES
        for i in range(first, first + _LANES):
            term[i] = 1.0
            out[i] = 1.0
        more, k = 1, 0
        while more > 0 and k < _MOST:
            more = 0
            k += 1
            for i in range(first, first + _LANES):
                value = term[i] * (x[i] / (a[i] + k))
                term[i] = value
                out[i] = out[i] + value
                more += 1 if value > out[i] * enough else 0
        for i in range(first, first + _LANES):
            out[i] = out[i] * exp(a[i] * log(x[i]) - x[i] - log_gamma(a[i] + 1.0))


def _fraction(begin: int, end: int, out: Array, c: Array, d: Array, a: Array, x: Array) -> None:
    """Q(a, x) by Legendre's continued fraction, good for x from a + 1 on."""
    for turn in range(begin, end):
        first = turn * _LANES
        for i in range(first, first + _LANES):
            c[i] = 1.0 / _TINY
            d[i] = 1.0 / (x[i] + 1.0 - a[i])
            out[i] = d[i]
        more, k = 1, 0
        while more > 0 and k < _MOST:
            more = 0
            k += 1
            for i in range(first, first + _LANES):
                step = k * (a[i] - k)
                below = x[i] + 1.0 - a[i] + 2 * k
                denominator = 1.0 / _nonzero(step * d[i] + below)
                numerator = _nonzero(below + step / c[i])
                change = denominator * numerator
                d[i] = denominator
                c[i] = numerator
                out[i] = out[i] * change
                more += 1 if abs(change - 1.0) > _ENOUGH else 0
        for i in range(first, first + _LANES):
            out[i] = out[i] * exp(a[i] * log(x[i]) - x[i] - log_gamma(a[i]))


def _tail(
    begin: int, end: int, out: Array, shift: Array, a: Array, x: Array, nodes: Array,
    weights: Array, count: int,
) -> None:  # fmt: skip
    """The integral of (t / x)**(a - 1) exp(x - t) (log t - digamma(a)) over t beyond x."""
    for turn in range(begin, end):
        first = turn * _LANES
        for i in range(first, first + _LANES):
            shift[i] = log(x[i]) - _psi(a[i])
            out[i] = 0.0
        for k in range(count):
            for i in range(first, first + _LANES):
                beyond = nodes[k] / (x[i] - (a[i] - 1.0))
                grown = log1p(beyond)
                weight = exp((a[i] - 1.0) * (grown - beyond)) * weights[k]
                out[i] = out[i] + weight * (grown + shift[i])
        for i in range(first, first + _LANES):
            out[i] = out[i] / (1.0 - (a[i] - 1.0) / x[i])


def _beta(
    begin: int, end: int, out: Array, above: Array, below: Array, a: Array, b: Array, x: Array
) -> None:  # fmt: skip
    """The incomplete beta function by its continued fraction, good for x up to its mean, about.

    A turn of the inner loop takes two steps of the recurrence of numerators and denominators, and
    divides by the last denominator: `above` and `below` are those before it.
    """
    for turn in range(begin, end):
        first = turn * _LANES
        for i in range(first, first + _LANES):
            out[i] = 1.0
            above[i] = 0.0
            below[i] = 1.0
        more, k = 1, 0
        while more > 0 and k < _MOST:
            more = 0
            k += 1
            for i in range(first, first + _LANES):
                near = a[i] + (2 * k - 2)
                odd, even = near * (near + 1.0), (near + 1.0) * (near + 2.0)
                step = -(a[i] + k - 1.0) * (a[i] + b[i] + k - 1.0) * x[i]
                top = even * (odd * out[i] + step * above[i])
                bottom = even * (odd + step * below[i])
                step = k * (b[i] - k) * x[i] * odd
                inverse = 1.0 / (bottom + step)
                value = (top + step * out[i]) * inverse
                above[i] = top * inverse
                below[i] = bottom * inverse
                more += 1 if abs(value - out[i]) > value * _EXACT else 0
                out[i] = value
        for i in range(first, first + _LANES):
            front = a[i] * log(x[i]) + b[i] * log1p(-x[i])
            front += log_gamma(a[i] + b[i]) - log_gamma(a[i]) - log_gamma(b[i])
            out[i] = out[i] * exp(front) / a[i]


def _log_gammas(begin: int, end: int, out: Array, x: Array) -> None:
    for i in range(begin, end):
        value = log_gamma(double(x[i]))
        out[i] = value if (x[i] - 1) * (x[i] - 2) != 0 else 0.0  # of which the sum knows nothing


def _digammas(begin: int, end: int, out: Array, x: Array) -> None:
    for i in range(begin, end):
        out[i] = _psi(double(x[i]))


def _front(begin: int, end: int, out: Array, a: Array, x: Array) -> None:
    """What stands in front of that sum in the derivative of P."""
    for i in range(begin, end):
        out[i] = exp(a[i] * log(x[i]) - x[i] - log_gamma(a[i] + 1.0))


def _zeta(begin: int, end: int, out: Array, s: Array, q: Array) -> None:
    """Hurwitz' zeta function by Euler-Maclaurin summation, of s above 1 and positive q."""
    for turn in range(begin, end):
        first = turn * _LANES
        for i in range(first, first + _LANES):
            power = exp(-s[i] * log(q[i] + 8.0))
            z = q[i] + 8.0
            inverse = 1.0 / z
            total = z * power / (s[i] - 1.0) + 0.5 * power
            factor, scale, next = s[i], power * inverse, s[i] + 1.0
            for part in _PARTS:
                total = total + factor * scale * part
                factor = factor * next * (next + 1.0)
                next = next + 2.0
                scale = scale * inverse * inverse
            for k in _SHIFTS:
                total = total + exp(-s[i] * log(q[i] + k))
            out[i] = total


def _factorials(begin: int, end: int, out: Array, n: Array) -> None:
    """Times n!, with the sign of polygamma."""
    for i in range(begin, end):
        even = floor(n[i] * 0.5) * 2 == n[i]
        size = out[i] * exp(log_gamma(n[i] + 1.0))
        out[i] = -size if even else size


_SERIES: Final = Looped(_series)
_FRACTION: Final = Looped(_fraction)
_TAIL: Final = Looped(_tail)
_FRONT: Final = Looped(_front)
_BETA: Final = Looped(_beta)
_LOG_GAMMAS: Final = Looped(_log_gammas)
_DIGAMMAS: Final = Looped(_digammas)
_ZETA: Final = Looped(_zeta)
_FACTORIALS: Final = Looped(_factorials)


# ---------------------------------------------------------------- arrays
def _filled(values: Array) -> Array:
    """In double precision, with ones behind up to a whole number of turns."""
    out = np.ones(-(-values.size // _LANES) * _LANES)
    out[: values.size] = values
    return out


def _run(loop: Looped, count: int, given: tuple[Array, ...], *more: Any) -> Array | None:
    """What a loop makes of arrays, and of what else it takes; None if there is no code.

    Args:
        loop: the function.
        count: how many arrays it needs to work in.
        given: what it reads of each element.
        *more: what it takes behind that.
    """
    arrays = [_filled(x) for x in given]
    size = arrays[0].size
    out, *rest = (np.empty(size) for _ in range(1 + count))
    if not loop(size // _LANES, _WORK * size, out, *rest, *arrays, *more):
        return None
    return out[: given[0].size]


def _wide(*values: Any) -> list[Array]:
    """Arrays of one shape in double precision."""
    return list(np.broadcast_arrays(*(np.asarray(v, np.float64) for v in values)))


def gamma_of(a: Any, x: Any, upper: bool, other: Callable[[Array, Array], Array]) -> Array | None:
    """P(a, x), or Q(a, x), in double precision; None if there is no code.

    Args:
        a, x: the arguments.
        upper: whether it is Q.
        other: the function for arguments that these loops are not for.
    """
    a, x = _wide(a, x)
    # What is left of one has no digits where nearly all of it is gone.
    least = _NARROW if upper else 0.0
    valid = (a > least) & (a < _BROAD) & (x > 0) & np.isfinite(x)
    small = x < a + 1
    near, far = np.flatnonzero(valid & small), np.flatnonzero(valid & ~small)
    enough = _EXACT if upper else _ENOUGH
    low = _run(_SERIES, 1, (a.take(near), x.take(near)), enough) if near.size else np.empty(0)
    high = _run(_FRACTION, 2, (a.take(far), x.take(far))) if far.size else np.empty(0)
    if low is None or high is None:
        return None
    out = np.full(a.shape, np.nan)
    out.put(near, 1 - low if upper else low)
    out.put(far, high if upper else 1 - high)
    rest = np.flatnonzero((a >= 0) & (x >= 0) & ~valid)
    if rest.size:
        out.put(rest, other(a.take(rest), x.take(rest)))
    return out


def gamma_slope(a: Any, x: Any) -> Array | None:
    """The derivative of P(a, x) by a in double precision; None if there is no code."""
    a, x = _wide(a, x)
    valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    out = np.where((x == 0) & (a > 0), 0.0, np.nan)
    places = np.flatnonzero(valid)
    if places.size:
        given = a.take(places), x.take(places)
        front = np.empty(places.size)
        done = _FRONT(places.size, _WORK * places.size, front, *given)
        if not done or not slope_sums(out, a, x, places):
            return None
        out.put(places, front * out.take(places))
    return out


def beta_of(a: Any, b: Any, x: Any, other: Callable[..., Array]) -> Array | None:
    """The regularized incomplete beta function, otherwise as `gamma_of`."""
    a, b, x = _wide(a, b, x)
    valid = (a > 0) & (b > 0) & (a < _BROAD) & (b < _BROAD) & (x > 0) & (x < 1)
    places, rest = np.flatnonzero(valid), np.flatnonzero(~valid)
    out = np.empty(a.shape)
    if places.size:
        first, second, at = (v.take(places) for v in (a, b, x))
        # Beyond the mean, what is left of one is the function of the other side.
        turned = at > (first + 1) / (first + second + 2)
        sides = np.where(turned, second, first), np.where(turned, first, second)
        found = _run(_BETA, 2, (*sides, np.where(turned, 1 - at, at)))
        if found is None:
            return None
        out.put(places, np.where(turned, 1 - found, found))
    if rest.size:
        out.put(rest, other(a.take(rest), b.take(rest), x.take(rest)))
    return out


def log_gammas(x: Any, other: Callable[[Array], Array]) -> Array | None:
    """The logarithm of gamma's size, otherwise as `gamma_of`."""
    return _of_positive(_LOG_GAMMAS, x, other)


def digammas(x: Any, other: Callable[[Array], Array]) -> Array | None:
    """The derivative of the logarithm of gamma, otherwise as `gamma_of`."""
    return _of_positive(_DIGAMMAS, x, other)


def _of_positive(loop: Looped, x: Any, other: Callable[[Array], Array]) -> Array | None:
    """A loop of positive numbers, another function of the rest."""
    x = np.asarray(x)
    inside = (x > 0) & (x < _GREAT)
    out, given = np.empty(x.shape), np.where(inside, x, x.dtype.type(1))
    if not loop(x.size, _WORK * x.size / 4, out, given):
        return None
    rest = np.flatnonzero(~inside)
    if rest.size:
        out.put(rest, other(x.take(rest)))
    return out


def tail_integral(a: Array, x: Array, double: bool = False) -> Array | None:
    """What a sample x far beyond the mean moves by as its shape a grows, of positive vectors."""
    return _run(_TAIL, 1, (a, x), _NODES, _WEIGHTS, len(_NODES) if double else _COUNTED)


def zeta(s: Any, q: Any, other: Callable[[Array, Array], Array]) -> Array | None:
    """Hurwitz' zeta function, otherwise as `gamma_of`."""
    s, q = _wide(s, q)
    return _where((s > 1) & (s < _LARGEST) & (q > 0) & np.isfinite(q), _zeta_of, other, s, q)


def polygamma(n: Any, x: Any, other: Callable[[Array, Array], Array]) -> Array | None:
    """The n-th derivative of digamma, otherwise as `gamma_of`."""
    n, x = _wide(n, x)
    inside = (n >= 0) & (n < _LARGEST) & (n == np.floor(n)) & (x > 0) & np.isfinite(x)
    return _where(inside, _polygamma_of, other, n, x)


def _zeta_of(s: Array, q: Array) -> Array | None:
    return _run(_ZETA, 0, (s, q))


def _polygamma_of(n: Array, x: Array) -> Array | None:
    out, zero, more = np.empty(n.size), np.flatnonzero(n == 0), np.flatnonzero(n)
    if zero.size:
        values, places = np.empty(zero.size), x.take(zero)
        if not _DIGAMMAS(zero.size, _WORK * zero.size, values, places):
            return None
        out.put(zero, values)
    if more.size:
        order = n.take(more)
        sums = _zeta_of(order + 1, x.take(more))
        if sums is None or not _FACTORIALS(more.size, _WORK * more.size, sums, order):
            return None
        out.put(more, sums)
    return out


def _where(
    inside: Array,
    ours: Callable[[Array, Array], Array | None],
    other: Callable[[Array, Array], Array],
    a: Array,
    b: Array,
) -> Array | None:
    """One function of the elements that are inside, another one of the rest."""
    places, rest = np.flatnonzero(inside), np.flatnonzero(~inside)
    if not places.size:
        return other(a, b)
    found = ours(a.take(places), b.take(places))
    if found is None:
        return None
    out = np.empty(a.shape)
    out.put(places, found)
    if rest.size:
        out.put(rest, other(a.take(rest), b.take(rest)))
    return out
