"""Special functions over any array namespace: error functions, gamma and its relatives, Bessel.

Each works in the precision of its argument. The series coefficients are Chebyshev fits to double
precision, of which single precision takes as many as it can tell; the rest are the usual
recurrences, asymptotic series and continued fractions. What single precision has fits of its own
for is in `kernels/single.py`.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Final

from opdock.kernels import single

Array = Any

_ERF: Final = (
    0.9754769393826541, -0.1422612051037137, 0.01003558218759973, -0.0005768764699766038,
    2.741993125196629e-05, -1.104317550542078e-06, 3.848875508527527e-08, -1.180858175686694e-09,
    3.233426859594602e-11, -7.990674788516117e-13, 1.783906355967702e-14,
)  # fmt: skip
_ERFCX: Final = (
    1.177578934567402, -0.004590054580646381, -0.08424913336651801, 0.05920993999819203,
    -0.02665866843530605, 0.009074997670705418, -0.002413163540417953, 0.0004907758365259163,
    -6.916973302495855e-05, 4.13902798607424e-06, 7.740383064902546e-07, -2.18864010310682e-07,
    1.076499930974251e-08, 4.521959775516393e-09, -7.754402187032384e-10, -6.318083389800222e-11,
    2.868762116747803e-11, 1.943067928777964e-13, -9.653478016957706e-13, 3.284039706841213e-14,
    3.328004538616369e-14, -1.784128400572627e-15, -1.620925615952729e-15, 4.163336342344337e-16,
)  # fmt: skip
_I0E_NEAR: Final = (
    0.338397637204738, -0.3046826723431983, 0.1716209015222086, -0.09490109704804749,
    0.04930528423967055, -0.02373741480589935, 0.01054646039459475, -0.004324309995050515,
    0.001639475616941317, -0.0005763755745385569, 0.0001885028850957549, -5.754195010051921e-05,
    1.644844807049961e-05, -4.416738358531402e-06, 1.117387538911441e-06, -2.67079385312119e-07,
    6.046995004727052e-08, -1.300025016914841e-08, 2.659823703510256e-09, -5.18979322849944e-10,
    9.675803380737591e-11, -1.726826348580346e-11, 2.954790856435352e-12, -4.85346207668158e-13,
    7.646439037500841e-14, -1.167926866330049e-14, 1.537658889105842e-15,
)  # fmt: skip
_I0E_FAR: Final = (
    0.4022452055070543, 0.003369116478255698, 6.889758346915187e-05, 2.891370520892167e-06,
    2.048918588570814e-07, 2.266668996497856e-08, 3.396231893493251e-09, 4.940602815750595e-10,
    1.188915632610588e-11, -3.149915883682297e-11, -1.321587284053294e-11, -1.794078219319317e-12,
    7.179368211041038e-13, 3.852784757896188e-13, 1.530775506353166e-14, -4.14668299697496e-14,
    -9.658940314238862e-15, 3.733680031814402e-15, 1.811883976188256e-15,
)  # fmt: skip
_I1E_NEAR: Final = (
    0.1262935932218168, -0.176416518357834, 0.102643658689847, -0.05294598120809491,
    0.02472644903062644, -0.01056408489462614, 0.004156422944312771, -0.001513572450631228,
    0.0005122859561685564, -0.0001617608158258804, 4.781565107545474e-05, -1.327316365588166e-05,
    3.470251308021477e-06, -8.568720265031416e-07, 2.00329475254224e-07, -4.445059124530415e-08,
    9.38153729673763e-09, -1.887249776177935e-09, 3.625590050404526e-10, -6.663478213653207e-11,
    1.173616648308951e-11, -1.983986169795671e-12, 3.222641598021881e-13, -5.028963356856764e-14,
    7.457368056407177e-15, -1.109633218643324e-15,
)  # fmt: skip
_I1E_FAR: Final = (
    0.3892881175091401, -0.009761097491361425, -0.0001105889387626591, -3.882564808801447e-06,
    -2.512236238816357e-07, -2.631468840164075e-08, -3.835380517624998e-09, -5.589743112821566e-10,
    -1.897494605884731e-11, 3.252604408032766e-11, 1.412575389991844e-11, 2.035722701521081e-12,
    -7.199396634405275e-13, -4.083600124715759e-13, -2.111644192837048e-14, 4.275690912436403e-14,
    1.031175145271845e-14, -3.884670363163423e-15, -1.84074977482851e-15, 4.440892098500626e-16,
)  # fmt: skip
# B(2k) / (2k (2k - 1)): the asymptotic series of log gamma.
_STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
# B(2k) / 2k: that of digamma.
_DIGAMMA: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# (2k)! / B(2k): the terms of Euler-Maclaurin summation, for zeta.
_EULER_MACLAURIN: Final = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1307674368000.0 / 691, 74724249600.0,
    -10670622842880000.0 / 3617, 5109094217170944000.0 / 43867,
    -802857662698291200000.0 / 174611,
)  # fmt: skip
SERIES: Final = {
    "erf": _ERF, "erfcx": _ERFCX, "i0e_near": _I0E_NEAR, "i0e_far": _I0E_FAR,
    "i1e_near": _I1E_NEAR, "i1e_far": _I1E_FAR, "digamma": _DIGAMMA, "stirling": _STIRLING,
    "euler_maclaurin": _EULER_MACLAURIN,
}  # fmt: skip
"""The coefficients, for backends that write the same functions in another language."""
_SINGLE: Final = 1e-10
"""An epsilon above it is one of single precision or less."""
_MAX_TERMS: Final = 4000


@functools.cache
def terms_told(coefficients: tuple[float, ...], epsilon: float) -> tuple[float, ...]:
    """A Chebyshev series without the last terms, all of which are below its last bit."""
    least = abs(coefficients[0]) * epsilon / 32
    rest = itertools.accumulate(abs(c) for c in reversed(coefficients))
    return coefficients[: sum(total > least for total in rest)]


def _chebyshev(xp: Any, coefficients: tuple[float, ...], t: Array) -> Array:
    """The Chebyshev series at `t` in [-1, 1], by Clenshaw's recurrence."""
    first, *others = terms_told(coefficients, _epsilon(xp, t))
    later = earlier = t * 0
    double = 2 * t
    for c in reversed(others):
        later, earlier = double * later - earlier + c, later
    return t * later - earlier + first


def _where(xp: Any, condition: Array, then: Any, otherwise: Any) -> Array:
    """`where` that takes a number on either side."""
    if isinstance(then, (int, float)):
        then = xp.full_like(otherwise, then)
    elif isinstance(otherwise, (int, float)):
        otherwise = xp.full_like(then, otherwise)
    return xp.where(condition, then, otherwise)


def _broadcast(xp: Any, *arrays: Array) -> list[Array]:
    return list(xp.broadcast_arrays(*arrays))


def _epsilon(xp: Any, x: Array) -> float:
    return float(xp.finfo(x.dtype).eps)


# ---------------------------------------------------------------- error functions
def _erfcx(xp: Any, x: Array) -> Array:
    """`exp(x * x) * erfc(x)` for x >= 0."""
    return _chebyshev(xp, _ERFCX, (x - 3.75) / (x + 3.75)) / (1 + 2 * x)


def _erf_near(xp: Any, x: Array) -> Array:
    """Erf for |x| <= 1."""
    return x * _chebyshev(xp, _ERF, 2 * x * x - 1)


def erf(xp: Any, x: Array) -> Array:
    """The error function."""
    if _epsilon(xp, x) > _SINGLE:
        return single.erf(xp, x)
    size = xp.minimum(xp.abs(x), xp.full_like(x, 30.0))
    near = xp.minimum(size, xp.ones_like(x))
    value = xp.where(size <= 1, _erf_near(xp, near), 1 - xp.exp(-size * size) * _erfcx(xp, size))
    value = xp.where(xp.isnan(x), x, value)
    return xp.where(x < 0, -value, value)


def erfc(xp: Any, x: Array) -> Array:
    """`1 - erf(x)`."""
    if _epsilon(xp, x) > _SINGLE:
        return single.erfc(xp, x)
    size = xp.minimum(xp.abs(x), xp.full_like(x, 30.0))
    near = xp.minimum(size, xp.ones_like(x))
    far = xp.exp(-size * size) * _erfcx(xp, size)
    tail = xp.where(size <= 0.5, 1 - _erf_near(xp, near), far)
    tail = xp.where(xp.isnan(x), x, tail)
    return xp.where(x < 0, 2 - tail, tail)


def _erfc_inverse(xp: Any, q: Array) -> Array:
    """X >= 0 with erfc(x) = q, for q in (0, 1]."""
    # A rough closed form, then Newton's method on log erfc, which is close to a parabola.
    target = xp.log(q)
    log = target + xp.log(2 - q)
    a = 2 / (math.pi * 0.147) + log / 2
    root = xp.sqrt(a * a - log / 0.147)
    x = xp.sqrt(xp.maximum(root - a, xp.zeros_like(q)))
    for _ in range(4 if _epsilon(xp, q) < _SINGLE else 2):  # each doubles the digits, from three on
        scaled = _erfcx(xp, x)
        excess = xp.log(scaled) - x * x - target
        x = xp.maximum(x + excess * scaled * (math.sqrt(math.pi) / 2), xp.zeros_like(q))
    return x


def erfinv(xp: Any, p: Array) -> Array:
    """The inverse of `erf`."""
    if _epsilon(xp, p) > _SINGLE:
        return single.erfinv(xp, p)
    size = xp.abs(p)
    inside = xp.where(size < 1, size, xp.zeros_like(p))
    x = _erfc_inverse(xp, 1 - inside)
    # Near 0 the subtraction from 1 cost digits; one more step on erf itself brings them back.
    near = xp.minimum(x, xp.ones_like(x))
    error = (_erf_near(xp, near) - inside) * math.sqrt(math.pi) / 2 * xp.exp(near * near)
    x = xp.where(inside < 0.5, x - error, x)
    x = _where(xp, size == 1, math.inf, x)
    x = _where(xp, (size > 1) | xp.isnan(p), math.nan, x)
    return xp.where(p < 0, -x, x)


def ndtri(xp: Any, p: Array) -> Array:
    """The quantile function of the normal distribution."""
    tail = xp.minimum(p, 1 - p)
    inside = _where(xp, tail > 0, 2 * tail, 1.0)
    x = math.sqrt(2.0) * _erfc_inverse(xp, inside)
    x = _where(xp, tail == 0, math.inf, x)
    x = _where(xp, (tail < 0) | xp.isnan(p), math.nan, x)
    return xp.where(p < 0.5, -x, x)


# ---------------------------------------------------------------- gamma
def _asymptotic(xp: Any, x: Array, series: tuple[float, ...]) -> tuple[int, tuple[float, ...]]:
    """From where on an asymptotic series serves, and how many of its terms."""
    return (4, series[:4]) if _epsilon(xp, x) > _SINGLE else (8, series)


def _is_pole(xp: Any, x: Array) -> Array:
    return (x <= 0) & (x == xp.floor(x))


def lgamma(xp: Any, x: Array) -> Array:
    """`log |gamma(x)|`."""
    start, terms = _asymptotic(xp, x, _STIRLING)
    reflected = x < 0.5
    y = xp.where(reflected, 1 - x, x)
    y = _where(xp, xp.isfinite(y), y, 1.0)
    shifted = y < start
    small = _where(xp, shifted, y, 1.0)
    product = math.prod((small + k for k in range(1, start)), start=small)
    z = xp.where(shifted, y + start, y)
    inverse = 1 / z
    squared = inverse * inverse
    series = xp.zeros_like(z)
    for c in reversed(terms):
        series = series * squared + c
    value = (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + series * inverse
    value = xp.where(shifted, value - xp.log(product), value)
    # sin(pi x) by the distance to the nearest whole number, which is exact.
    sine = xp.abs(xp.sin(math.pi * (x - xp.round(x))))
    pole = _is_pole(xp, x)
    sine = _where(xp, sine == 0, 1.0, sine)
    value = xp.where(reflected, math.log(math.pi) - xp.log(sine) - value, value)
    value = _where(xp, pole | xp.isinf(x), math.inf, value)
    return xp.where(xp.isnan(x), x, value)


def digamma(xp: Any, x: Array) -> Array:
    """The derivative of log gamma; NaN at its poles."""
    start, terms = _asymptotic(xp, x, _DIGAMMA)
    reflected = x < 0.5
    y = xp.where(reflected, 1 - x, x)
    safe = _where(xp, xp.isfinite(y), y, 1.0)
    shifted = safe < start
    small = _where(xp, shifted, safe, 1.0)
    # 1 / (y + k) and the next in one quotient.
    pairs = ((2 * small + 2 * k + 1) / ((small + k) * (small + k + 1)) for k in range(0, start, 2))
    correction = _where(xp, shifted, sum(pairs), 0.0)
    z = xp.where(shifted, safe + start, safe)
    squared = 1 / (z * z)
    series = xp.zeros_like(z)
    for c in reversed(terms):
        series = series * squared + c
    value = xp.log(z) - 0.5 / z - series * squared - correction
    value = xp.where(reflected, value - _cotangent(xp, x - xp.round(x)), value)
    value = _where(xp, _is_pole(xp, x), math.nan, value)
    return xp.where(xp.isfinite(x), value, _where(xp, x < 0, math.nan, x))


def _cotangent(xp: Any, x: Array) -> Array:
    """Pi times the cotangent of pi times `x`, which is at most a half; anything of 0."""
    x = _where(xp, x == 0, 0.25, x)
    half = xp.abs(x) == 0.5
    if _epsilon(xp, x) > _SINGLE:
        value = single.cotangent(x)
    else:
        value = math.pi / xp.tan(math.pi * x)
    return _where(xp, half, 0.0, value)


# ---------------------------------------------------------------- incomplete gamma
def _gamma_series(xp: Any, a: Array, x: Array) -> Array:
    """P(a, x) by its power series: good for x < a + 1."""
    term = xp.ones_like(x)
    total = term
    n = a
    for _ in range(_MAX_TERMS):
        n = n + 1
        term = term * x / n
        total = total + term
        if not bool(xp.any(term > total * _epsilon(xp, x))):
            break
    return total * xp.exp(a * xp.log(x) - x - lgamma(xp, a + 1))


def _gamma_fraction(xp: Any, a: Array, x: Array) -> Array:
    """Q(a, x) by Legendre's continued fraction: good for x >= a + 1."""
    tiny = float(xp.finfo(x.dtype).smallest_normal) * 4
    b = x + 1 - a
    c = xp.full_like(x, 1 / tiny)
    d = 1 / b
    value = d
    for i in range(1, _MAX_TERMS):
        step = -i * (i - a)
        b = b + 2
        d = _away_from_zero(xp, step * d + b, tiny)
        c = _away_from_zero(xp, b + step / c, tiny)
        d = 1 / d
        change = d * c
        value = value * change
        if not bool(xp.any(xp.abs(change - 1) > _epsilon(xp, x))):
            break
    return xp.exp(a * xp.log(x) - x - lgamma(xp, a)) * value


def _away_from_zero(xp: Any, x: Array, tiny: float) -> Array:
    return _where(xp, xp.abs(x) < tiny, tiny, x)


def _incomplete_gamma(xp: Any, a: Array, x: Array, upper: bool) -> Array:
    a, x = _broadcast(xp, a, x)
    valid = (a > 0) & (x > 0) & xp.isfinite(a) & xp.isfinite(x)
    safe_a, safe_x = _where(xp, valid, a, 1.0), _where(xp, valid, x, 1.0)
    small = safe_x < safe_a + 1
    series = _gamma_series(xp, safe_a, xp.where(small, safe_x, safe_a))
    fraction = _gamma_fraction(xp, safe_a, xp.where(small, safe_a + 2, safe_x))
    if upper:
        value = xp.where(small, 1 - series, fraction)
    else:
        value = xp.where(small, series, 1 - fraction)
    value = _where(xp, valid, value, math.nan)
    ends = (0.0, 1.0) if not upper else (1.0, 0.0)
    value = _where(xp, (x == 0) & (a > 0), ends[0], value)
    value = _where(xp, xp.isinf(x) & (x > 0) & (a > 0) & xp.isfinite(a), ends[1], value)
    return _where(xp, xp.isinf(a) & (a > 0) & (x >= 0) & xp.isfinite(x), ends[0], value)


def igamma(xp: Any, a: Array, x: Array) -> Array:
    """The regularized lower incomplete gamma function P(a, x)."""
    return _incomplete_gamma(xp, a, x, upper=False)


def igammac(xp: Any, a: Array, x: Array) -> Array:
    """The regularized upper incomplete gamma function Q(a, x)."""
    return _incomplete_gamma(xp, a, x, upper=True)


def igamma_grad_a(xp: Any, a: Array, x: Array) -> Array:
    """The derivative of P(a, x) with respect to a."""
    a, x = _broadcast(xp, a, x)
    valid = (a > 0) & (x > 0) & xp.isfinite(a) & xp.isfinite(x)
    n, z = _where(xp, valid, a, 1.0), _where(xp, valid, x, 1.0)
    log = xp.log(z)
    # The power series of P, term by term; digamma grows by 1 / n from term to term.
    term = xp.exp(n * log - z - lgamma(xp, n + 1))
    psi = digamma(xp, n + 1)
    total = term * (log - psi)
    for _ in range(_MAX_TERMS):
        n = n + 1
        psi = psi + 1 / n
        term = term * z / n
        total = total + term * (log - psi)
        growing = n < z
        if not bool(xp.any(growing | (term * xp.abs(log - psi) > _epsilon(xp, x) * xp.abs(total)))):
            break
    total = _where(xp, valid, total, math.nan)
    # Where 0-d arrays widen (NumPy 1), the sum has left its type.
    return xp.astype(_where(xp, (x == 0) & (a > 0), 0.0, total), x.dtype)


# ---------------------------------------------------------------- zeta, polygamma
def zeta(xp: Any, x: Array, q: Array) -> Array:
    """The Hurwitz zeta function, by Euler-Maclaurin summation."""
    x, q = _broadcast(xp, x, q)
    whole = q == xp.floor(q)
    valid = (x > 1) & ((q > 0) | (~whole & (x == xp.floor(x))))
    s, a = _where(xp, valid, x, 2.0), _where(xp, valid, q, 1.0)
    total = xp.zeros_like(a)
    # Negative arguments are summed up to the positive side first.
    while True:
        negative = a <= 0
        if not bool(xp.any(negative)):
            break
        base = _where(xp, negative, a, 1.0)
        total = xp.where(negative, total + _signed_power(xp, base, s), total)
        a = xp.where(negative, a + 1, a)
    for _ in range(10):
        total = total + xp.pow(a, -s)
        a = a + 1
    power = xp.pow(a, -s)
    total = total + a * power / (s - 1) + 0.5 * power
    factor, scale = s, power / a
    for k, bottom in enumerate(_EULER_MACLAURIN):
        total = total + factor * scale / bottom
        factor = factor * (s + (2 * k + 1)) * (s + (2 * k + 2))
        scale = scale / (a * a)
    value = _where(xp, valid, total, math.nan)
    value = _where(xp, x == 1, math.inf, value)
    return _where(xp, (x > 1) & (q <= 0) & whole, math.inf, value)


def _signed_power(xp: Any, base: Array, s: Array) -> Array:
    """`base ** -s` for a base that may be negative and a whole s."""
    size = xp.pow(xp.abs(base), -s)
    return xp.where((base < 0) & (xp.remainder(s, xp.full_like(s, 2.0)) == 1), -size, size)


def polygamma(xp: Any, n: Array, x: Array) -> Array:
    """The n-th derivative of digamma."""
    n, x = _broadcast(xp, n, x)
    valid = (n >= 0) & (n == xp.floor(n))
    order = _where(xp, valid & (n > 0), n, 1.0)
    odd = xp.remainder(order, xp.full_like(order, 2.0)) == 1
    value = xp.exp(lgamma(xp, order + 1)) * zeta(xp, order + 1, x)
    value = xp.where(odd, value, -value)
    value = xp.where(n == 0, digamma(xp, x), value)
    return _where(xp, valid, value, math.nan)


# ---------------------------------------------------------------- incomplete beta
def betainc(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function I_x(a, b)."""
    a, b, x = _broadcast(xp, a, b, x)
    valid = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    p, q, z = (_where(xp, valid, v, d) for v, d in ((a, 1.0), (b, 1.0), (x, 0.5)))
    # The fraction converges fast below the mean; above it the mirror image is taken.
    mirrored = z > (p + 1) / (p + q + 2)
    p, q, z = (
        xp.where(mirrored, q, p), xp.where(mirrored, p, q), xp.where(mirrored, 1 - z, z),
    )  # fmt: skip
    log_beta = lgamma(xp, p) + lgamma(xp, q) - lgamma(xp, p + q)
    front = xp.exp(p * xp.log(z) + q * xp.log1p(-z) - log_beta) / p
    value = front * _beta_fraction(xp, p, q, z)
    value = xp.where(mirrored, 1 - value, value)
    value = _where(xp, valid, value, math.nan)
    proper = (a > 0) & (b > 0)
    value = _where(xp, proper & (x == 0), 0.0, value)
    return _where(xp, proper & (x == 1), 1.0, value)


def _beta_fraction(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = float(xp.finfo(x.dtype).smallest_normal) * 4
    c = xp.ones_like(x)
    d = 1 / _away_from_zero(xp, 1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + (2 * m + 1)))
        for step in (even, odd):
            d = 1 / _away_from_zero(xp, 1 + step * d, tiny)
            c = _away_from_zero(xp, 1 + step / c, tiny)
            value = value * d * c
        if not bool(xp.any(xp.abs(d * c - 1) > _epsilon(xp, x))):
            break
    return value


# ---------------------------------------------------------------- Bessel functions
def _bessel(xp: Any, x: Array, near: tuple[float, ...], far: tuple[float, ...]) -> Array:
    """`near` at |x| <= 8, `far` over sqrt |x| beyond."""
    size = xp.abs(x)
    small = size <= 8
    inside = _where(xp, small, size, 8.0)
    beyond = _where(xp, small, 8.0, size)
    return xp.where(
        small,
        _chebyshev(xp, near, inside / 4 - 1),
        _chebyshev(xp, far, 16 / beyond - 1) / xp.sqrt(beyond),
    )


def i0e(xp: Any, x: Array) -> Array:
    """`exp(-|x|)` times the modified Bessel function of order 0."""
    return _bessel(xp, x, _I0E_NEAR, _I0E_FAR)


def i1e(xp: Any, x: Array) -> Array:
    """`exp(-|x|)` times the modified Bessel function of order 1."""
    value = _bessel(xp, x, _I1E_NEAR, _I1E_FAR)
    # The series near 0 is that of i1e(x) / x.
    return xp.where(xp.abs(x) <= 8, x * value, xp.sign(x) * value)
