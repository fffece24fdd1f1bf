"""Special functions in C: gamma and its relatives, inverses of the error function, Bessel.

The algorithms, and the coefficients, are those of core's portable kernels (Chebyshev series by
Clenshaw's recurrence, Newton's method, asymptotic series with recurrences, Legendre's and Lentz's
continued fractions, Euler-Maclaurin summation). `A` is the type they compute in, double where the
device has it, and `EPS` its precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from opdock.plugin import codegen

__all__ = ["FUNCTIONS"]


def _chebyshev(name: str) -> str:
    """A function for a Chebyshev series at t in [-1, 1], written out term by term."""
    first, *rest = codegen.SERIES[name]
    lines = ["A near = 0, far = 0, next;"]
    for c in reversed(rest):
        lines.append(f"next = 2 * t * near - far + (A){c!r}; far = near; near = next;")
    lines.append(f"return t * near - far + (A){first!r};")
    return f"INLINE A sp_{name}(A t) {{\n  " + "\n  ".join(lines) + "\n}\n"


def _horner(coefficients: Sequence[float], x: str) -> str:
    text = "(A)0"
    for c in reversed(coefficients):
        text = f"({text} * {x} + (A){c!r})"
    return text


_ERROR: Final = """
INLINE A sp_scaled(A x) { return sp_erfcx((x - (A)3.75) / (x + (A)3.75)) / (1 + 2 * x); }
INLINE A sp_erf_near(A x) { return x * sp_erf(2 * x * x - 1); }
INLINE A sp_erfc_inverse(A q) {
  A target = log(q), l = target + log(2 - q);
  A a = (A)4.330746750799873 + l / 2;
  A gap = sqrt(a * a - l / (A)0.147) - a;
  A x = gap > 0 ? sqrt(gap) : (A)0;
  for (int k = 0; k < 4; ++k) {
    A s = sp_scaled(x);
    x += (log(s) - x * x - target) * s * (A)0.8862269254527579;
    x = x > 0 ? x : (A)0;
  }
  return x;
}
INLINE A sp_Erfinv(A p) {
  A size = fabs(p);
  if (!(size < 1)) return size == 1 ? (p < 0 ? -(A)INFINITY : (A)INFINITY) : (A)NAN;
  A x = sp_erfc_inverse(1 - size);
  if (size < (A)0.5) x -= (sp_erf_near(x) - size) * (A)0.8862269254527579 * exp(x * x);
  return p < 0 ? -x : x;
}
INLINE A sp_Ndtri(A p) {
  A tail = p < 1 - p ? p : 1 - p;
  A x = tail > 0 ? (A)1.4142135623730951 * sp_erfc_inverse(2 * tail)
                 : tail == 0 ? (A)INFINITY : (A)NAN;
  return p < (A)0.5 ? -x : x;
}
"""
_DIGAMMA: Final = """
INLINE A sp_Digamma(A x) {
  if (x != x || x == (A)INFINITY) return x;
  if (x == -(A)INFINITY || (x <= 0 && x == floor(x))) return (A)NAN;
  int reflected = x < (A)0.5;
  A y = reflected ? 1 - x : x, correction = 0;
  for (int k = 0; k < 8 && y < 8; ++k) { correction += 1 / y; y += 1; }
  A squared = 1 / (y * y);
  A value = log(y) - (A)0.5 / y - SERIES * squared - correction;
  if (reflected) {
    A fraction = x - rint(x);
    if (fabs(fraction) != (A)0.5)
      value -= (A)3.141592653589793 / tan((A)3.141592653589793 * fraction);
  }
  return value;
}
"""
_GAMMA: Final = """
INLINE A sp_gamma_series(A a, A x) {
  A term = 1, total = 1, n = a;
  for (int k = 0; k < 4000; ++k) {
    n += 1;
    term *= x / n;
    total += term;
    if (!(term > total * EPS)) break;
  }
  return total * exp(a * log(x) - x - lgamma(a + 1));
}
INLINE A sp_nonzero(A x) { return fabs(x) < TINY ? (A)TINY : x; }
INLINE A sp_gamma_fraction(A a, A x) {
  A b = x + 1 - a, c = 1 / (A)TINY, d = 1 / b, value = d;
  for (int i = 1; i < 4000; ++i) {
    A step = -i * (i - a);
    b += 2;
    d = 1 / sp_nonzero(step * d + b);
    c = sp_nonzero(b + step / c);
    value *= d * c;
    if (!(fabs(d * c - 1) > EPS)) break;
  }
  return exp(a * log(x) - x - lgamma(a)) * value;
}
INLINE A sp_incomplete(A a, A x, int upper) {
  if (!(a > 0) || !(x >= 0)) return (A)NAN;
  if (a == (A)INFINITY) return x == (A)INFINITY ? (A)NAN : (A)upper;
  if (x == 0) return (A)upper;
  if (x == (A)INFINITY) return (A)!upper;
  if (x < a + 1) {
    A p = sp_gamma_series(a, x);
    return upper ? 1 - p : p;
  }
  A q = sp_gamma_fraction(a, x);
  return upper ? q : 1 - q;
}
INLINE A sp_Igamma(A a, A x) { return sp_incomplete(a, x, 0); }
INLINE A sp_Igammac(A a, A x) { return sp_incomplete(a, x, 1); }
INLINE A sp_IgammaGradA(A a, A x) {
  if (x == 0 && a > 0) return 0;
  if (!(a > 0 && x > 0 && a < (A)INFINITY && x < (A)INFINITY)) return (A)NAN;
  A l = log(x), n = a, psi = sp_Digamma(a + 1);
  A term = exp(a * l - x - lgamma(a + 1)), total = term * (l - psi);
  for (int k = 0; k < 4000; ++k) {
    n += 1;
    psi += 1 / n;
    term *= x / n;
    total += term * (l - psi);
    if (!(n < x || term * fabs(l - psi) > EPS * fabs(total))) break;
  }
  return total;
}
"""
_ZETA: Final = """
INLINE A sp_Zeta(A s, A q) {
  int whole = q == floor(q);
  if (s == 1) return (A)INFINITY;
  if (!(s > 1) || q != q) return (A)NAN;
  if (q <= 0) {
    if (whole) return (A)INFINITY;
    if (s != floor(s)) return (A)NAN;
  }
  A total = 0;
  int odd = fmod(s, (A)2) == 1;
  for (; q <= 0; q += 1) { A p = pow(fabs(q), -s); total += q < 0 && odd ? -p : p; }
  for (int k = 0; k < 10; ++k) { total += pow(q, -s); q += 1; }
  A power = pow(q, -s), factor = s, scale = power / q;
  total += q * power / (s - 1) + (A)0.5 * power;
  TERMS
  return total;
}
INLINE A sp_Polygamma(A n, A x) {
  if (n == 0) return sp_Digamma(x);
  if (!(n > 0) || n != floor(n)) return (A)NAN;
  A value = exp(lgamma(n + 1)) * sp_Zeta(n + 1, x);
  return fmod(n, (A)2) == 1 ? value : -value;
}
"""
_BETA: Final = """
INLINE A sp_beta_fraction(A a, A b, A x) {
  A c = 1, d = 1 / sp_nonzero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < 4000; ++m) {
    A even = m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m));
    A odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + (2 * m + 1)));
    d = 1 / sp_nonzero(1 + even * d);
    c = sp_nonzero(1 + even / c);
    value *= d * c;
    d = 1 / sp_nonzero(1 + odd * d);
    c = sp_nonzero(1 + odd / c);
    value *= d * c;
    if (!(fabs(d * c - 1) > EPS)) break;
  }
  return value;
}
INLINE A sp_Betainc(A a, A b, A x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return (A)NAN;
  if (x == 0 || x == 1) return x;
  int mirrored = x > (a + 1) / (a + b + 2);
  A p = mirrored ? b : a, q = mirrored ? a : b, z = mirrored ? 1 - x : x;
  A front = exp(p * log(z) + q * log1p(-z) - (lgamma(p) + lgamma(q) - lgamma(p + q))) / p;
  A value = front * sp_beta_fraction(p, q, z);
  return mirrored ? 1 - value : value;
}
"""
_BESSEL: Final = """
INLINE A sp_BesselI0e(A x) {
  A size = fabs(x);
  return size <= 8 ? sp_i0e_near(size / 4 - 1) : sp_i0e_far(16 / size - 1) / sqrt(size);
}
INLINE A sp_BesselI1e(A x) {
  A size = fabs(x);
  if (size <= 8) return x * sp_i1e_near(size / 4 - 1);
  A value = sp_i1e_far(16 / size - 1) / sqrt(size);
  return x < 0 ? -value : value;
}
"""
# The derivative of a gamma sample by its shape: -(dP/da) / p by the power series of P, or, far in
# the upper tail where that would cancel, integrated over what lies beyond by Gauss-Laguerre.
_SAMPLE: Final = """
INLINE A sp_RandomGammaGrad(A a, A x) {
  if (!(a > 0 && x >= 0)) return (A)NAN;
  if (x == 0) return 0;
  A l = log(x);
  if (x > a + 6 * sqrt(a) + 12) {
    A decay = 1 - (a - 1) / x, gap = l - sp_Digamma(a), total = 0, beyond, grown;
    LAGUERRE
    return total / decay;
  }
  A psi = sp_Digamma(a + 1), term = x / a, total = term * (l - psi);
  int last = (int)ceil((x > a ? x - a : (A)0) + 12 * sqrt(x)) + 60;
  for (int n = 1; n < last; ++n) {
    term *= x / (a + n);
    psi += 1 / (a + n);
    total += term * (l - psi);
  }
  return -total;
}
"""


def _terms() -> str:
    lines = []
    for k, bottom in enumerate(codegen.SERIES["euler_maclaurin"]):
        lines.append(
            f"total += factor * scale / (A){bottom!r}; factor *= (s + {2 * k + 1}) * "
            f"(s + {2 * k + 2}); scale /= q * q;"
        )
    return "\n  ".join(lines)


def _laguerre() -> str:
    lines = []
    for node, weight in zip(*np.polynomial.laguerre.laggauss(48), strict=True):
        lines.append(
            f"beyond = (A){float(node)!r} / decay; grown = log1p(beyond / x); total += "
            f"(A){float(weight)!r} * exp((a - 1) * (grown - beyond / x)) * (grown + gap);"
        )
    return "\n    ".join(lines)


def _build() -> dict[str, tuple[int, str]]:
    error = _chebyshev("erf") + _chebyshev("erfcx") + _ERROR
    digamma = _DIGAMMA.replace("SERIES", _horner(codegen.SERIES["digamma"], "squared"))
    gamma = digamma + _GAMMA
    zeta = digamma + _ZETA.replace("TERMS", _terms())
    zero = _chebyshev("i0e_near") + _chebyshev("i0e_far")
    one = _chebyshev("i1e_near") + _chebyshev("i1e_far")
    head, tail = _BESSEL.split("INLINE A sp_BesselI1e")
    return {
        "Erfinv": (1, error), "Ndtri": (1, error), "Digamma": (1, digamma),
        "Igamma": (2, gamma), "Igammac": (2, gamma), "IgammaGradA": (2, gamma),
        "Zeta": (2, zeta), "Polygamma": (2, zeta), "Betainc": (3, gamma + _BETA),
        "BesselI0e": (1, zero + head), "BesselI1e": (1, one + "INLINE A sp_BesselI1e" + tail),
        "RandomGammaGrad": (2, digamma + _SAMPLE.replace("LAGUERRE", _laguerre())),
    }  # fmt: skip


FUNCTIONS: Final = _build()
"""Op -> the number of its arguments, and the C in which `sp_Op` computes one element."""
