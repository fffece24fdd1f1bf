"""Special functions in C: gamma and its relatives, inverses of the error function, Bessel.

The series' coefficients are those of core's portable kernels: Chebyshev series by Clenshaw's
recurrence, asymptotic series, Legendre's and Lentz's continued fractions, Euler-Maclaurin
summation. Quantiles of the normal distribution are M. J. Wichura's, "Algorithm AS 241", 1988.

`A` is the type they compute in. A work item has `LANES` elements, which take each step beside each
other: on a CPU the compiler makes vectors of them, and a series goes on while one of them has to;
elsewhere there is one. What is computed for each (`EACH`) has no branches, what is chosen from
stands before.

LOG, EXP, POW, LOG1P, TAN, LGAMMA are the functions of `A` that do for the type of the result, TAN
up to a quarter of a turn. `ENOUGH` of a sum is what does not count in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opdock.plugin import codegen

__all__ = ["FUNCTIONS", "HEAD", "Special"]


@dataclass(frozen=True)
class Special:
    """A special function.

    Attributes:
        arguments: how many it takes.
        source: the C in which `sp_Op` computes it.
        together: whether `sp_Op` takes and fills arrays of `LANES` numbers, else it is of one.
        single: whether single precision suffices for a result of single precision.
    """

    arguments: int
    source: str
    together: bool = False
    single: bool = False


HEAD: Final = """
#define EACH for (int e = 0; e < LANES; ++e)
#define PI (A)3.14159265358979323846
INLINE A sp_pick(int first, A a, A b) { return first ? a : b; }
"""
"""What stands before each of them."""


def _chebyshev(name: str) -> str:
    """A function for a Chebyshev series at t in [-1, 1], written out term by term."""
    first, *rest = codegen.SERIES[name]
    lines = ["A near = 0, far = 0, next;"]
    for c in reversed(rest):
        lines.append(f"next = 2 * t * near - far + (A){c!r}; far = near; near = next;")
    lines.append(f"return t * near - far + (A){first!r};")
    return f"INLINE A sp_{name}(A t) {{\n  " + "\n  ".join(lines) + "\n}\n"


def _horner(coefficients: Sequence[float], x: str) -> str:
    """A polynomial by Horner's rule, lowest power first."""
    text = f"(A){coefficients[-1]!r}"
    for c in reversed(coefficients[:-1]):
        text = f"({text} * {x} + (A){c!r})"
    return text


# Of |p - 1/2| up to .425, and of the root of the tail's logarithm up to 5 and above.
_MIDDLE_P = (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
             1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
             3.3430575583588128105e4, 2.5090809287301226727e3)  # fmt: skip
_MIDDLE_Q = (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
             2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
             5.2264952788528545610e3)  # fmt: skip
_NEAR_P = (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
           3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
           2.27238449892691845833e-2, 7.74545014278341407640e-4)  # fmt: skip
_NEAR_Q = (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
           1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
           1.05075007164441684324e-9)  # fmt: skip
_FAR_P = (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
          2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
          2.71155556874348757815e-5, 2.01033439929228813265e-7)  # fmt: skip
_FAR_Q = (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
          7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
          2.04426310338993978564e-15)  # fmt: skip

_QUANTILE: Final = f"""
INLINE A sp_quantile(A beyond, A tail) {{
  A root = sqrt(-LOG(tail)), square = (A)0.180625 - beyond * beyond;
  int middle = beyond <= (A)0.425, near = root <= 5;
  A w = near ? root - (A)1.6 : root - 5;
  A p0 = beyond * {_horner(_MIDDLE_P, "square")};
  A q0 = {_horner(_MIDDLE_Q, "square")};
  A p1 = {_horner(_NEAR_P, "w")};
  A q1 = {_horner(_NEAR_Q, "w")};
  A p2 = {_horner(_FAR_P, "w")};
  A q2 = {_horner(_FAR_Q, "w")};
  return sp_pick(middle, p0, sp_pick(near, p1, p2)) / sp_pick(middle, q0, sp_pick(near, q1, q2));
}}
INLINE A sp_Erfinv(A p) {{
  A size = fabs(p), x = (A)0.70710678118654752440 * sp_quantile(size / 2, (1 - size) / 2);
  return copysign(size == 1 ? (A)INFINITY : x, p);
}}
INLINE A sp_Ndtri(A p) {{
  A rest = 1 - p, tail = p < rest ? p : rest, x = sp_quantile((A)0.5 - tail, tail);
  x = tail == 0 ? (A)INFINITY : x;
  return p < (A)0.5 ? -x : x;
}}
"""
_DIGAMMA: Final = f"""
INLINE A sp_Digamma(A x) {{
  int mirrored = x < (A)0.5;
  A y = mirrored ? 1 - x : x, fraction = x - rint(x);
  int shifted = y < 8;
  A u = shifted ? y : (A)1, z = shifted ? y + 8 : y;
  A less = (2 * u + 1) / (u * (u + 1)) + (2 * u + 5) / ((u + 2) * (u + 3))
         + (2 * u + 9) / ((u + 4) * (u + 5)) + (2 * u + 13) / ((u + 6) * (u + 7));
  A squared = 1 / (z * z);
  A value = LOG(z) - (A)0.5 / z - {_horner(codegen.SERIES["digamma"], "squared")} * squared;
  A slope = PI / TAN(PI * fraction);
  value -= shifted ? less : (A)0;
  value -= mirrored && fabs(fraction) != (A)0.5 ? slope : (A)0;
  value = x <= 0 && fraction == 0 ? (A)NAN : value;
  return x == (A)INFINITY ? x : x == -(A)INFINITY ? (A)NAN : value;
}}
"""
_GAMMA: Final = """
INLINE A sp_nonzero(A x) { return fabs(x) < TINY ? (A)TINY : x; }
INLINE A sp_front(A a, A x, A whole) { return EXP(a * LOG(x) - x - LGAMMA(whole)); }
INLINE void sp_series(const A* a, const A* x, A* out) {
  A term[LANES];
  EACH { term[e] = 1; out[e] = 1; }
  for (int k = 1, more = 1; more && k < 4000; ++k) {
    more = 0;
    EACH {
      term[e] *= x[e] / (a[e] + k);
      out[e] += term[e];
      more |= term[e] > out[e] * ENOUGH;
    }
  }
  EACH out[e] *= sp_front(a[e], x[e], a[e] + 1);
}
INLINE void sp_fraction(const A* a, const A* x, A* out) {
  A c[LANES], d[LANES];
  EACH { c[e] = 1 / (A)TINY; d[e] = 1 / (x[e] + 1 - a[e]); out[e] = d[e]; }
  for (int k = 1, more = 1; more && k < 4000; ++k) {
    more = 0;
    EACH {
      A step = k * (a[e] - k), below = x[e] + 1 - a[e] + 2 * k;
      d[e] = 1 / sp_nonzero(step * d[e] + below);
      c[e] = sp_nonzero(below + step / c[e]);
      A change = d[e] * c[e];
      out[e] *= change;
      more |= fabs(change - 1) > ENOUGH;
    }
  }
  EACH out[e] *= sp_front(a[e], x[e], a[e]);
}
INLINE void sp_incomplete(const A* a, const A* x, A* out, int upper) {
  A shape[LANES], at[LANES], p[LANES], q[LANES];
  int few = 0, many = 0, small, valid;
  EACH {
    valid = a[e] > 0 && x[e] > 0 && a[e] < (A)INFINITY && x[e] < (A)INFINITY;
    small = valid && x[e] < a[e] + 1;
    shape[e] = small ? a[e] : (A)1;
    at[e] = small ? x[e] : (A)0;
    p[e] = 0;
    q[e] = 0;
    few |= small;
    many |= valid && !small;
  }
  if (few) sp_series(shape, at, p);
  EACH {
    valid = a[e] > 0 && x[e] > 0 && a[e] < (A)INFINITY && x[e] < (A)INFINITY;
    small = x[e] < a[e] + 1;
    shape[e] = valid && !small ? a[e] : (A)1;
    at[e] = valid && !small ? x[e] : (A)100;
  }
  if (many) sp_fraction(shape, at, q);
  EACH {
    A low = x[e] < a[e] + 1 ? p[e] : 1 - q[e], high = x[e] < a[e] + 1 ? 1 - p[e] : q[e];
    A value = upper ? high : low;
    value = x[e] == 0 || a[e] == (A)INFINITY ? (A)upper : value;
    value = x[e] == (A)INFINITY ? (a[e] == (A)INFINITY ? (A)NAN : (A)!upper) : value;
    out[e] = a[e] > 0 && x[e] >= 0 ? value : (A)NAN;
  }
}
INLINE void sp_Igamma(const A* a, const A* x, A* out) { sp_incomplete(a, x, out, 0); }
INLINE void sp_Igammac(const A* a, const A* x, A* out) { sp_incomplete(a, x, out, 1); }
"""
# The sum of x**n / ((a + 1) ... (a + n)) times log x less digamma(a + n + 1): what the derivative
# of P by a has beside `sp_front`.
_SLOPE: Final = """
INLINE void sp_slope(const A* a, const A* x, A* out) {
  A term[LANES], gap[LANES];
  EACH { term[e] = 1; gap[e] = LOG(x[e]) - sp_Digamma(a[e] + 1); out[e] = gap[e]; }
  for (int k = 1, more = 1; more && k < 4000; ++k) {
    more = 0;
    EACH {
      A inverse = 1 / (a[e] + k);
      gap[e] -= inverse;
      term[e] *= x[e] * inverse;
      A value = term[e] * gap[e];
      out[e] += value;
      more |= a[e] + k < x[e] || fabs(value) > ENOUGH * fabs(out[e]);
    }
  }
}
"""
_GRADIENT: Final = """
INLINE void sp_IgammaGradA(const A* a, const A* x, A* out) {
  A shape[LANES], at[LANES];
  int valid;
  EACH {
    valid = a[e] > 0 && x[e] > 0 && a[e] < (A)INFINITY && x[e] < (A)INFINITY;
    shape[e] = valid ? a[e] : (A)1;
    at[e] = valid ? x[e] : (A)1;
  }
  sp_slope(shape, at, out);
  EACH {
    valid = a[e] > 0 && x[e] > 0 && a[e] < (A)INFINITY && x[e] < (A)INFINITY;
    A value = out[e] * sp_front(shape[e], at[e], shape[e] + 1);
    out[e] = valid ? value : x[e] == 0 && a[e] > 0 ? (A)0 : (A)NAN;
  }
}
"""
# Below zero, the terms up to the positive side are those of two sums of positive numbers.
_ZETA: Final = """
INLINE A sp_hurwitz(A s, A q) {
  A z = q + 10, power = POW(z, -s), inverse = 1 / z, factor = s, scale = power * inverse;
  A rest = z * power / (s - 1) + (A)0.5 * power, total = 0;
  TERMS
  STEPS
  return power > 0 ? total + rest : total;
}
INLINE void sp_Zeta(const A* s, const A* q, A* out) {
  A exponent[LANES], at[LANES], share[LANES], value;
  int below = 0, valid, negative;
  EACH { out[e] = 0; below |= q[e] < 0; }
  for (int turn = 0; turn < (below ? 3 : 1); ++turn) {
    EACH {
      A up = q[e] - floor(q[e]), pairs = floor(s[e] * (A)0.5);
      A left = turn < 2 ? up : q[e], sign = pairs * 2 == s[e] ? (A)1 : (A)-1;
      negative = q[e] < 0;
      valid = s[e] > 1 && (negative ? up != 0 && s[e] == floor(s[e]) : q[e] > 0);
      exponent[e] = valid ? s[e] : (A)2;
      left = turn > 0 ? 1 - left : left;
      at[e] = !valid ? (A)1 : negative ? left : q[e];
      A weight = turn > 0 ? (negative ? sign : (A)0) : (A)1;
      share[e] = turn < 2 ? weight : -weight;
    }
    EACH { value = sp_hurwitz(exponent[e], at[e]); out[e] += share[e] * value; }
  }
  EACH {
    negative = q[e] < 0 && q[e] != floor(q[e]) && s[e] == floor(s[e]);
    valid = s[e] > 1 && (negative || q[e] > 0);
    value = valid ? out[e] : (A)NAN;
    value = s[e] > 1 && q[e] <= 0 && q[e] == floor(q[e]) ? (A)INFINITY : value;
    out[e] = s[e] == 1 ? (A)INFINITY : value;
  }
}
"""
_POLYGAMMA: Final = """
INLINE void sp_Polygamma(const A* n, const A* x, A* out) {
  A next[LANES];
  EACH next[e] = n[e] > 0 ? n[e] + 1 : (A)2;
  sp_Zeta(next, x, out);
  EACH {
    A size = EXP(LGAMMA(next[e])) * out[e], first = sp_Digamma(x[e]);
    A value = floor(n[e] * (A)0.5) * 2 == n[e] ? -size : size;
    out[e] = n[e] == 0 ? first : n[e] > 0 && n[e] == floor(n[e]) ? value : (A)NAN;
  }
}
"""
_BETA: Final = """
INLINE void sp_beta_fraction(const A* a, const A* b, const A* x, A* out) {
  A c[LANES], d[LANES];
  EACH {
    c[e] = 1;
    d[e] = 1 / sp_nonzero(1 - (a[e] + b[e]) * x[e] / (a[e] + 1));
    out[e] = d[e];
  }
  for (int k = 1, more = 1; more && k < 4000; ++k) {
    more = 0;
    EACH {
      A near = a[e] + (2 * k - 1), far = near + 1;
      A even = k * (b[e] - k) * x[e] / (near * far);
      A odd = -(a[e] + k) * (a[e] + b[e] + k) * x[e] / (far * (far + 1));
      d[e] = 1 / sp_nonzero(1 + even * d[e]);
      c[e] = sp_nonzero(1 + even / c[e]);
      out[e] *= d[e] * c[e];
      d[e] = 1 / sp_nonzero(1 + odd * d[e]);
      c[e] = sp_nonzero(1 + odd / c[e]);
      out[e] *= d[e] * c[e];
      more |= fabs(d[e] * c[e] - 1) > ENOUGH;
    }
  }
}
INLINE void sp_Betainc(const A* a, const A* b, const A* x, A* out) {
  A p[LANES], q[LANES], z[LANES];
  int valid, mirrored;
  EACH {
    valid = a[e] > 0 && b[e] > 0 && x[e] > 0 && x[e] < 1;
    A left = valid ? a[e] : (A)1, right = valid ? b[e] : (A)1, at = valid ? x[e] : (A)0.5;
    mirrored = at > (left + 1) / (left + right + 2);
    p[e] = mirrored ? right : left;
    q[e] = mirrored ? left : right;
    z[e] = mirrored ? 1 - at : at;
  }
  sp_beta_fraction(p, q, z, out);
  EACH {
    valid = a[e] > 0 && b[e] > 0 && x[e] > 0 && x[e] < 1;
    A front = p[e] * LOG(z[e]) + q[e] * LOG1P(-z[e]);
    front -= LGAMMA(p[e]) + LGAMMA(q[e]) - LGAMMA(p[e] + q[e]);
    A value = EXP(front) / p[e] * out[e];
    value = x[e] > (a[e] + 1) / (a[e] + b[e] + 2) ? 1 - value : value;
    value = a[e] > 0 && b[e] > 0 && (x[e] == 0 || x[e] == 1) ? x[e] : valid ? value : (A)NAN;
    out[e] = value;
  }
}
"""
_BESSEL: Final = """
INLINE A sp_BesselI0e(A x) {
  A size = fabs(x), inside = size < 8 ? size : (A)8, beyond = size < 8 ? (A)8 : size;
  A near = sp_i0e_near(inside / 4 - 1), far = sp_i0e_far(16 / beyond - 1) / sqrt(beyond);
  return size != size ? x : size <= 8 ? near : far;
}
INLINE A sp_BesselI1e(A x) {
  A size = fabs(x), inside = size < 8 ? size : (A)8, beyond = size < 8 ? (A)8 : size;
  A near = size * sp_i1e_near(inside / 4 - 1), far = sp_i1e_far(16 / beyond - 1) / sqrt(beyond);
  A value = size <= 8 ? near : far;
  return size != size ? x : x < 0 ? -value : value;
}
"""
# The derivative of a gamma sample by its shape: -(dP/da) / p by the power series of P, or, far in
# the upper tail where that would cancel, integrated over what lies beyond by Gauss-Laguerre.
_SAMPLE: Final = """
INLINE A sp_tail(A a, A x) {
  A decay = 1 - (a - 1) / x, gap = LOG(x) - sp_Digamma(a), total = 0, beyond, grown;
  LAGUERRE
  return total / decay;
}
INLINE void sp_RandomGammaGrad(const A* a, const A* x, A* out) {
  A shape[LANES], at[LANES];
  int far = 0, valid, beyond;
  EACH {
    valid = a[e] > 0 && x[e] > 0;
    beyond = x[e] > a[e] + 6 * sqrt(a[e]) + 12;
    shape[e] = valid && !beyond ? a[e] : (A)1;
    at[e] = valid && !beyond ? x[e] : (A)1;
    far |= valid && beyond;
  }
  sp_slope(shape, at, out);
  EACH out[e] *= -at[e] / shape[e];
  EACH {
    valid = a[e] > 0 && x[e] > 0;
    beyond = x[e] > a[e] + 6 * sqrt(a[e]) + 12;
    shape[e] = valid && beyond ? a[e] : (A)1;
    at[e] = valid && beyond ? x[e] : (A)100;
  }
  if (far)
    EACH {
      A value = sp_tail(shape[e], at[e]);
      out[e] = x[e] > a[e] + 6 * sqrt(a[e]) + 12 ? value : out[e];
    }
  EACH out[e] = x[e] == 0 && a[e] > 0 ? (A)0 : a[e] > 0 && x[e] > 0 ? out[e] : (A)NAN;
}
"""


def _euler_maclaurin() -> str:
    lines = []
    for k, bottom in enumerate(codegen.SERIES["euler_maclaurin"]):
        lines.append(
            f"rest += factor * scale * (A){1 / bottom!r}; factor *= (s + {2 * k + 1}) * "
            f"(s + {2 * k + 2}); scale *= inverse * inverse;"
        )
    return "\n  ".join(lines)


def _laguerre() -> str:
    lines = []
    for node, weight in zip(*np.polynomial.laguerre.laggauss(48), strict=True):
        lines.append(
            f"beyond = (A){float(node)!r} / decay; grown = LOG1P(beyond / x); total += "
            f"(A){float(weight)!r} * EXP((a - 1) * (grown - beyond / x)) * (grown + gap);"
        )
    return "\n  ".join(lines)


def _build() -> dict[str, Special]:
    powers = "\n  ".join(f"total += POW(q + {k}, -s);" for k in range(10))
    zeta = _ZETA.replace("TERMS", _euler_maclaurin()).replace("STEPS", powers)
    zero = _chebyshev("i0e_near") + _chebyshev("i0e_far")
    one = _chebyshev("i1e_near") + _chebyshev("i1e_far")
    bessel = zero + one + _BESSEL
    slope = _DIGAMMA + _SLOPE
    sample = slope + _SAMPLE.replace("LAGUERRE", _laguerre())
    return {
        "Erfinv": Special(1, _QUANTILE, single=True),
        "Ndtri": Special(1, _QUANTILE, single=True),
        "BesselI0e": Special(1, bessel, single=True),
        "BesselI1e": Special(1, bessel, single=True),
        "Digamma": Special(1, _DIGAMMA),
        "Igamma": Special(2, _GAMMA, together=True),
        "Igammac": Special(2, _GAMMA, together=True),
        "IgammaGradA": Special(2, slope + _GAMMA + _GRADIENT, together=True),
        "Zeta": Special(2, zeta, together=True),
        "Polygamma": Special(2, _DIGAMMA + zeta + _POLYGAMMA, together=True),
        "Betainc": Special(3, _GAMMA + _BETA, together=True),
        "RandomGammaGrad": Special(2, sample, together=True),
    }


FUNCTIONS: Final = _build()
"""The functions by their ops."""
