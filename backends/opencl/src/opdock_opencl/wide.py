"""Functions of doubles that come from floats, in OpenCL C: their last bits do not count.

Where a result is rounded to single precision, they take the place of a CPU driver's functions of
double precision, which are called for one element at a time. There are no branches in them, or no
vectors would come of them: what is chosen from stands before. They know no edges where it is not
said.

Series and rational functions are those of Cephes (S. L. Moshier, "Methods and Programs for
Mathematical Functions", 1989; atan.c, gamma.c, sin.c), of the logarithm's Taylor series in
(m - 1) / (m + 1), and of W. J. Cody, "Rational Chebyshev approximations for the error function",
1969.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Final

__all__ = ["WIDE", "used"]


def _poly(x: str, coefficients: Sequence[float]) -> str:
    """A polynomial by Horner's rule, highest power first."""
    text = repr(coefficients[0])
    for c in coefficients[1:]:
        text = f"({text} * {x} + {c!r})"
    return text


def _ratio(x: str, above: Sequence[float], below: Sequence[float]) -> str:
    """A quotient of polynomials.

    What is combined of two that look alike, as `p / q` is, a compiler computes as a pair, and of
    pairs it makes no vectors any more; so are other functions here written.
    """
    return f"({_poly(x, above)} * (1 / {_poly(x, below)}))"


_ATAN_P = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
           -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
_ATAN_Q = (1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
           4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip
# Of |x| below .46875, up to 4, and above.
_ERF_P = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2,
          3.77485237685302021e2, 3.20937758913846947e3)  # fmt: skip
_ERF_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
          2.84423683343917062e3)  # fmt: skip
_MIDDLE_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594,
             6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
             1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3)  # fmt: skip
_MIDDLE_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
             1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
             3.43936767414372164e3, 1.23033935480374942e3)  # fmt: skip
_FAR_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
          1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_FAR_Q = (1.0, 2.56852019228982242, 1.87295284992346047, 5.27905102951428412e-1,
          6.05183413124413191e-2, 2.33520497626869185e-3)  # fmt: skip
_SIN = (1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
        -1.98412698295895385996e-4, 8.33333333332211858878e-3,
        -1.66666666666666307295e-1)  # fmt: skip
_COS = (-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
        2.48015872888517045348e-5, -1.38888888888730564116e-3,
        4.16666666666665929218e-2)  # fmt: skip
# Of log gamma between 2 and 3, and its asymptotic series from 8 on.
_GAMMA_P = (-1.37825152569120859100e3, -3.88016315134637840924e4, -3.31612992738871184744e5,
            -1.16237097492762307383e6, -1.72173700820839662146e6,
            -8.53555664245765465627e5)  # fmt: skip
_GAMMA_Q = (1.0, -3.51815701436523470549e2, -1.70642106651881159223e4, -2.20528590553854454839e5,
            -1.13933444367982507207e6, -2.53252307177582951285e6,
            -2.01889141433532773231e6)  # fmt: skip
_STIRLING = (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)

_PI: Final = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)


def _quarter() -> str:
    """A quarter of a turn in three parts, the first two of 29 bits."""
    left, found = _PI / 2, []
    for places in (28, 57):
        part = Decimal(int(left * 2**places)) / 2**places
        found.append(part)
        left -= part
    return ", ".join(f"p{k} = {float(part)!r}" for k, part in enumerate([*found, left]))


def _turns() -> str:
    """Whole turns in the angle 1, a binary fraction of 256 places, in words of 64 bits."""
    bits = int(2**256 / (2 * _PI))
    words = ((bits >> 192 - 64 * k) & (2**64 - 1) for k in range(4))
    return ", ".join(f"w{k} = {word:#x}UL" for k, word in enumerate(words))


with localcontext() as _context:
    _context.prec = len(_PI.as_tuple().digits)
    _QUARTER, _TURNS = _quarter(), _turns()

_FAR_APART: Final = 10
"""Steps of 28 bits in which the quotient of any two floats is divided out."""

WIDE: Final[dict[str, str]] = {
    "wide_pick": "inline double wide_pick(int first, double a, double b) { return first ? a : b; }",
    "wide_two": """
ALWAYS double wide_two(double n) { return as_double(as_long(n + (0x1p52 + 1023)) << 52); }""",
    "wide_log": f"""
ALWAYS double wide_log(double x) {{
  long bits = as_long(x);
  double m = as_double((bits & 0xFFFFFFFFFFFFFL) | 0x3FE0000000000000L);
  double e = as_double((bits >> 52) | 0x4330000000000000L) - (0x1p52 + 1022);
  int low = m < 0.70710678118654752440;
  m = low ? m + m : m;
  double s = (m - 1) / (m + 1), z = s * s;
  double tail = {_poly("z", [2 / k for k in range(19, 1, -2)])};
  double value = (low ? e - 1 : e) * 0.69314718055994530942 + (z * s * tail + (s + s));
  value = x == INFINITY ? x : value;
  value = x == 0 ? -INFINITY : value;
  return x >= 0 ? value : NAN;
}}""",
    "wide_log1p": """
ALWAYS double wide_log1p(double x) {
  double near = x - 0.5 * x * x, far = wide_log(1 + x);
  return fabs(x) < 1e-5 ? near : far;
}""",
    # Of one up to 2**51.
    "wide_rint": "ALWAYS double wide_rint(double x) { return (x + 0x1.8p52) - 0x1.8p52; }",
    "wide_halvings": """
ALWAYS double wide_halvings(double x) { return wide_rint(x * 1.44269504088896341); }""",
    "wide_less": f"""
ALWAYS double wide_less(double x, double n) {{
  double r = (x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  return {
        _poly(
            "r",
            [1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2],
        )
    } * r * r + r;
}}""",
    "wide_within": """
ALWAYS double wide_within(double x) { return x > 200 ? 200 : x < -200 ? -200 : x; }""",
    "wide_exp": """
ALWAYS double wide_exp(double x) {
  double n = wide_halvings(wide_within(x));
  return (wide_less(wide_within(x), n) + 1) * wide_two(n);
}""",
    "wide_expm1": """
ALWAYS double wide_expm1(double x) {
  double n = wide_halvings(wide_within(x)), two = wide_two(n);
  return two * wide_less(wide_within(x), n) + (two - 1);
}""",
    "wide_atan": f"""
ALWAYS double wide_atan(double x) {{
  double a = fabs(x);
  int far = a > 2.41421356237309504880, near = a <= 0.66;
  double t = (far ? -1 : near ? a : a - 1) / (far ? a : near ? 1 : a + 1), z = t * t;
  double ratio = z * {_ratio("z", _ATAN_P, _ATAN_Q)};
  double value = (far ? M_PI_2 : near ? 0 : M_PI_4) + (t * ratio + t);
  return copysign(value, x);
}}""",
    "wide_middle": f"""
ALWAYS double wide_middle(double a) {{
  return wide_exp(-a * a) * {_ratio("a", _MIDDLE_P, _MIDDLE_Q)};
}}""",
    "wide_far": f"""
ALWAYS double wide_far(double a) {{
  double y = 1 / (a * a), ratio = {_ratio("y", _FAR_P, _FAR_Q)};
  return wide_exp(-a * a) * (0.56418958354775628695 - y * ratio) / a;
}}""",
    "wide_erf": f"""
ALWAYS double wide_erf(double x) {{
  double z = x * x;
  return x * {_ratio("z", _ERF_P, _ERF_Q)};
}}""",
    # Of an angle up to an eighth of a turn.
    "wide_sin": f"""
ALWAYS double wide_sin(double r) {{ double z = r * r; return r * z * {_poly("z", _SIN)} + r; }}""",
    "wide_cos": f"""
ALWAYS double wide_cos(double r) {{
  double z = r * r;
  return z * z * {_poly("z", _COS)} + (1 - 0.5 * z);
}}""",
    # Of a whole number up to 2**52.
    "wide_whole": """
ALWAYS double wide_whole(ulong n) { return as_double(n | 0x4330000000000000UL) - 0x1p52; }""",
    # What is left of an angle by which quarters of a turn: the lowest two bits of `quarters`. From
    # 2**24 on, a float is a whole number of 24 bits times a power of two, in which there are so
    # many quarters, less whole turns: two parts of 26 bits, whose products are exact, and the rest.
    "wide_left": f"""
ALWAYS double wide_left(float x, int* quarters) {{
  const double up = 0x1.8p52, {_QUARTER};
  const ulong {_TURNS};
  double w = x, near = w * M_2_PI + up, count = near - up;
  double left = ((w - count * p0) - count * p1) - count * p2;
  int e = (int)((as_uint(x) & 0x7FFFFFFF) >> 23) - 150;
  e = e < 0 ? 0 : e > 104 ? 104 : e;
  int late = e >= 64;
  ulong s = e & 63, r = 63 - s, a = late ? w1 : w0, b = late ? w2 : w1, c = late ? w3 : w2;
  ulong high = a << s | b >> 1 >> r, low = b << s | c >> 1 >> r;
  double first = wide_whole(high >> 38) * 0x1p-24;
  double second = wide_whole(high >> 12 & 0x3FFFFFF) * 0x1p-50;
  double third = wide_whole((high & 0xFFF) << 40 | low >> 24) * 0x1p-102;
  double m = w * as_double((ulong)(1023 - e) << 52), part = m * first;
  part = (part - 4 * wide_rint(part * 0.25)) + m * second;
  double far = part + up, rest = ((part - (far - up)) + m * third) * M_PI_2;
  int large = fabs(x) >= 0x1p24f;
  *quarters = (int)as_long(large ? far : near);
  return large ? rest : left;
}}""",
    # Of an angle up to a quarter of a turn.
    "wide_tan": """
ALWAYS double wide_tan(double r) {
  double s = wide_sin(0.5 * r), c = wide_cos(0.5 * r);
  return s * (c + c) * (1 / ((c - s) * (c + s)));
}""",
    # Of a positive number.
    "wide_pow": """
ALWAYS double wide_pow(double x, double y) {
  double product = y * wide_log(x), value = wide_exp(product);
  return product > 200 ? INFINITY : product < -200 ? 0 : value;
}""",
    "wide_lgamma": f"""
ALWAYS double wide_lgamma(double x) {{
  double a = fabs(x), u = a, above = 1, below = 1;
  int far = a >= 8, down, up;
  #pragma unroll
  for (int k = 0; k < 5; ++k) {{
    down = u >= 3;
    u = down ? u - 1 : u;
    above = down ? above * u : above;
  }}
  #pragma unroll
  for (int k = 0; k < 2; ++k) {{
    up = u < 2;
    below = up ? below * u : below;
    u = up ? u + 1 : u;
  }}
  double grown = wide_log(far ? a : above / below), v = u - 2, y = 1 / a, z = y * y;
  double near = grown + v * {_ratio("v", _GAMMA_P, _GAMMA_Q)};
  double away = ((a - 0.5) * grown - a) + (0.91893853320467274178 + y * {_poly("z", _STIRLING)});
  double value = far ? away : near, angle = (a - rint(a)) * M_PI_2;
  double c = wide_cos(angle), size = fabs(wide_sin(angle) * (c + c));
  double mirrored = wide_log(M_PI / (a * size)) - value;
  value = x < 0 ? mirrored : value;
  return a == INFINITY ? a : value;
}}""",
    # Exact: a step leaves at most half of its divisor, which is a float times a power of two.
    "wide_fmod": f"""
ALWAYS double wide_fmod(double x, double y) {{
  double rest = fabs(x), b = fabs(y), inverse = 1 / b;
  #pragma unroll
  for (int k = {_FAR_APART - 1}; k >= 0; --k) {{
    double scale = as_double((long)(1023 + 28 * k) << 52);
    double back = as_double((long)(1023 - 28 * k) << 52);
    rest -= wide_rint(rest * (inverse * back)) * (b * scale);
  }}
  rest = rest < 0 ? rest + b : rest;
  rest = (b == INFINITY) & (fabs(x) < INFINITY) ? fabs(x) : rest;
  return copysign(rest, x);
}}""",
}
"""Each function, or what it reads, by its name; those that it calls stand before it."""


def used(source: str) -> str:
    """The functions that a source calls, and those that these call."""
    found: list[str] = []
    for name in reversed(WIDE):
        if re.search(rf"\b{name}\b", source):
            found.append(WIDE[name])
            source += WIDE[name]
    return "\n".join(reversed(found))
