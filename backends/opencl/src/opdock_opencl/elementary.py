"""Elementary functions in OpenCL C for devices that are CPUs.

Drivers for CPUs make vectors of arithmetic, of `exp` and of `sqrt`; their other functions are
called for one element at a time. These compute in double precision and round once, so that single
precision has its last bit but for rare cases; double precision keeps the driver's functions. There
are no branches in them, or no vectors would come of them: what is chosen from stands before.

Series and rational functions are those of Cephes (S. L. Moshier, "Methods and Programs for
Mathematical Functions", 1989; atan.c), of the logarithm's Taylor series in (m - 1) / (m + 1), and
of W. J. Cody, "Rational Chebyshev approximations for the error function", 1969.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["ON_CPU"]

_ONE: Final = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "expm1", "log",
    "log1p", "sinh",
)  # fmt: skip
_TWO: Final = ("atan2", "pow")


def _poly(x: str, coefficients: Sequence[float]) -> str:
    """A polynomial by Horner's rule, highest power first."""
    text = repr(coefficients[0])
    for c in coefficients[1:]:
        text = f"({text} * {x} + {c!r})"
    return text


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

# Of doubles that come from floats; `wide` functions know no edges where it is not said.
_WIDE: Final = f"""
inline double wide_pick(int first, double a, double b) {{ return first ? a : b; }}
ALWAYS double wide_log(double x) {{
  long bits = as_long(x);
  double m = as_double((bits & 0xFFFFFFFFFFFFFL) | 0x3FE0000000000000L);
  double e = as_double((bits >> 52) | 0x4330000000000000L) - (0x1p52 + 1022);
  int low = m < 0.70710678118654752440;
  m = low ? m + m : m;
  double s = (m - 1) / (m + 1), z = s * s;
  double tail = {_poly("z", [2 / k for k in range(15, 1, -2)])};
  double value = (low ? e - 1 : e) * 0.69314718055994530942 + (z * s * tail + (s + s));
  value = x == INFINITY ? x : value;
  value = x == 0 ? -INFINITY : value;
  return x >= 0 ? value : NAN;
}}
ALWAYS double wide_log1p(double x) {{
  double near = x - 0.5 * x * x, far = wide_log(1 + x);
  return fabs(x) < 1e-5 ? near : far;
}}
ALWAYS double wide_halvings(double x) {{ return rint(x * 1.44269504088896341); }}
ALWAYS double wide_less(double x, double n) {{
  double r = (x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  return {
    _poly(
        "r", [1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2]
    )
} * r * r + r;
}}
ALWAYS double wide_two(double n) {{ return as_double(as_long(n + (0x1p52 + 1023)) << 52); }}
ALWAYS double wide_within(double x) {{ return x > 200 ? 200 : x < -200 ? -200 : x; }}
ALWAYS double wide_exp(double x) {{
  double n = wide_halvings(wide_within(x));
  return (wide_less(wide_within(x), n) + 1) * wide_two(n);
}}
ALWAYS double wide_expm1(double x) {{
  double n = wide_halvings(wide_within(x)), two = wide_two(n);
  return two * wide_less(wide_within(x), n) + (two - 1);
}}
ALWAYS double wide_atan(double x) {{
  double a = fabs(x);
  int far = a > 2.41421356237309504880, near = a <= 0.66;
  double t = (far ? -1 : near ? a : a - 1) / (far ? a : near ? 1 : a + 1), z = t * t;
  double ratio = z * {_poly("z", _ATAN_P)} / {_poly("z", _ATAN_Q)};
  double value = (far ? M_PI_2 : near ? 0 : M_PI_4) + (t * ratio + t);
  return copysign(value, x);
}}
ALWAYS double wide_middle(double a) {{
  return wide_exp(-a * a) * {_poly("a", _MIDDLE_P)} / {_poly("a", _MIDDLE_Q)};
}}
ALWAYS double wide_far(double a) {{
  double y = 1 / (a * a), ratio = {_poly("y", _FAR_P)} / {_poly("y", _FAR_Q)};
  return wide_exp(-a * a) * (0.56418958354775628695 - y * ratio) / a;
}}
ALWAYS double wide_erf(double x) {{
  double z = x * x;
  return x * {_poly("z", _ERF_P)} / {_poly("z", _ERF_Q)};
}}
"""

_SINGLE: Final = """
float log(float x) { return (float)wide_log(x); }
float log1p(float x) { return x == 0 ? x : (float)wide_log1p(x); }
float expm1(float x) {
  float value = (float)wide_expm1(x);
  return x != x || x == 0 ? x : value;
}
float atan(float x) { return (float)wide_atan(x); }
float asin(float x) { double w = x; return (float)wide_atan(w / sqrt(1 - w * w)); }
float acos(float x) { double w = x; return (float)(2 * wide_atan(sqrt((1 - w) / (1 + w)))); }
float sinh(float x) {
  double less = wide_expm1(fabs((double)x));
  float value = (float)copysign(0.5 * (less + less / (less + 1)), (double)x);
  return x != x ? x : value;
}
float cosh(float x) {
  double grown = wide_expm1(fabs((double)x)) + 1;
  float value = (float)(0.5 * (grown + 1 / grown));
  return x != x ? x : value;
}
float asinh(float x) {
  double a = fabs((double)x), z = a * a;
  float value = (float)copysign(wide_log1p(a + z / (sqrt(z + 1) + 1)), (double)x);
  return fabs(x) == INFINITY || x == 0 ? x : value;
}
float acosh(float x) {
  double t = (double)x - 1;
  float value = (float)wide_log1p(t + sqrt(t * t + (t + t)));
  return t >= 0 ? value : NAN;
}
float atanh(float x) {
  double a = fabs((double)x);
  float value = (float)copysign(0.5 * wide_log1p((a + a) / (1 - a)), (double)x);
  return x == 0 ? x : a <= 1 ? value : NAN;
}
float erf(float x) {
  double a = fabs((double)x), near = wide_erf(x), middle = 1 - wide_middle(a);
  double far = copysign(wide_pick(a > 4, 1, middle), (double)x);
  float value = (float)wide_pick(a < 0.46875, near, far);
  return x != x ? x : value;
}
float erfc(float x) {
  double a = fabs((double)x), near = 1 - wide_erf(x), middle = wide_middle(a), far = wide_far(a);
  far = a > 11 ? 0 : a > 4 ? far : middle;
  double turned = 2 - far;
  float value = (float)(a < 0.46875 ? near : x < 0 ? turned : far);
  return x != x ? x : value;
}
float atan2(float y, float x) {
  double a = fabs((double)y), b = fabs((double)x), turn = wide_atan(a / b);
  turn = wide_pick(a == 0, 0, wide_pick(a == b, M_PI_4, turn));
  turn = wide_pick(as_int(x) < 0, M_PI - turn, turn);
  float value = (float)copysign(turn, (double)y);
  return x != x ? x : y != y ? y : value;
}
float pow(float x, float y) {
  double a = fabs((double)x), w = y;
  double product = w * wide_log(a);
  product = a == 1 ? 0 : product;
  double value = wide_exp(product), part = w * 0.5;
  value = product > 200 ? INFINITY : product < -200 ? 0 : value;
  int whole = w == rint(w), odd = whole & (part != rint(part));
  value = (as_int(x) < 0) & odd ? -value : value;
  value = (x < 0) & (a != INFINITY) & !whole ? NAN : value;
  value = (x != x) | (y != y) ? NAN : value;
  float single = (float)value;
  return (x == 1) | (y == 0) ? 1 : single;
}
"""


def _overloaded() -> str:
    """The functions under names of their own, beside the driver's for double precision."""
    text = _SINGLE
    for name in (*_ONE, *_TWO):
        head = f"\nfloat {name}(float"
        assert head in text, name
        text = text.replace(head, f"\nALWAYS float __attribute__((overloadable)) od_{name}(float")
    one = "ALWAYS double __attribute__((overloadable)) od_{0}(double x) {{ return {0}(x); }}\n"
    two = one.replace("double x)", "double x, double y)").replace("(x);", "(x, y);")
    plain = "".join(one.format(n) for n in _ONE) + "".join(two.format(n) for n in _TWO)
    names = "".join(f"#define {n}(...) od_{n}(__VA_ARGS__)\n" for n in (*_ONE, *_TWO))
    return text + plain + names


_ALWAYS: Final = "#define ALWAYS inline __attribute__((always_inline))\n"

ON_CPU: Final = f"#ifdef cl_khr_fp64\n{_ALWAYS}{_WIDE}{_overloaded()}#endif\n"
"""What stands before kernels for a device that is a CPU; nothing where it has no doubles."""
