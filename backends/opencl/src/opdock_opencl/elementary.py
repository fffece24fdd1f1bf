"""Elementary functions in OpenCL C for devices that are CPUs.

Drivers for CPUs make vectors of arithmetic, of `exp` and of `sqrt`; their other functions are
called for one element at a time. These compute in double precision and round once, so that single
precision has its last bit but for rare cases; double precision keeps the driver's functions.
"""

from __future__ import annotations

import re
from typing import Final

from opdock_opencl.wide import used

__all__ = ["before"]

_SINGLE: Final[dict[str, str]] = {
    "acos": """
float acos(float x) { double w = x; return (float)(2 * wide_atan(sqrt((1 - w) / (1 + w)))); }""",
    "acosh": """
float acosh(float x) {
  double t = (double)x - 1;
  float value = (float)wide_log1p(t + sqrt(t * t + (t + t)));
  return t >= 0 ? value : NAN;
}""",
    "asin": """
float asin(float x) { double w = x; return (float)wide_atan(w / sqrt(1 - w * w)); }""",
    "asinh": """
float asinh(float x) {
  double a = fabs((double)x), z = a * a;
  float value = (float)copysign(wide_log1p(a + z / (sqrt(z + 1) + 1)), (double)x);
  return fabs(x) == INFINITY || x == 0 ? x : value;
}""",
    "atan": """
float atan(float x) { return (float)wide_atan(x); }""",
    "atan2": """
float atan2(float y, float x) {
  double a = fabs((double)y), ratio = a * (1 / fabs((double)x)), turn = wide_atan(ratio);
  turn = wide_pick(a == 0, 0, wide_pick(ratio != ratio, M_PI_4, turn));
  turn = wide_pick(as_int(x) < 0, M_PI - turn, turn);
  float value = (float)copysign(turn, (double)y);
  return x != x ? x : y != y ? y : value;
}""",
    "atanh": """
float atanh(float x) {
  double a = fabs((double)x);
  float value = (float)copysign(0.5 * wide_log1p((a + a) / (1 - a)), (double)x);
  return x == 0 ? x : a <= 1 ? value : NAN;
}""",
    "cos": """
float cos(float x) {
  int k;
  double left = wide_left(x, &k), s = wide_sin(left), c = wide_cos(left);
  double value = k & 1 ? s : c;
  return (float)((k + 1) & 2 ? -value : value);
}""",
    "cosh": """
float cosh(float x) {
  double grown = wide_expm1(fabs((double)x)) + 1;
  float value = (float)(0.5 * (grown + 1 / grown));
  return x != x ? x : value;
}""",
    "erf": """
float erf(float x) {
  double a = fabs((double)x), near = wide_erf(x), middle = 1 - wide_middle(a);
  double far = copysign(wide_pick(a > 4, 1, middle), (double)x);
  float value = (float)wide_pick(a < 0.46875, near, far);
  return x != x ? x : value;
}""",
    "erfc": """
float erfc(float x) {
  double a = fabs((double)x), near = 1 - wide_erf(x), middle = wide_middle(a), far = wide_far(a);
  far = a > 11 ? 0 : a > 4 ? far : middle;
  double turned = 2 - far;
  float value = (float)(a < 0.46875 ? near : x < 0 ? turned : far);
  return x != x ? x : value;
}""",
    "expm1": """
float expm1(float x) {
  float value = (float)wide_expm1(x);
  return x != x || x == 0 ? x : value;
}""",
    "fmod": """
float fmod(float x, float y) { return (float)wide_fmod(x, y); }""",
    "lgamma": """
float lgamma(float x) { return (float)wide_lgamma(x); }""",
    "log": """
float log(float x) { return (float)wide_log(x); }""",
    "log1p": """
float log1p(float x) { return x == 0 ? x : (float)wide_log1p(x); }""",
    "pow": """
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
}""",
    "sin": """
float sin(float x) {
  int k;
  double left = wide_left(x, &k), s = wide_sin(left), c = wide_cos(left);
  double value = k & 1 ? c : s;
  return x == 0 ? x : (float)(k & 2 ? -value : value);
}""",
    "sinh": """
float sinh(float x) {
  double less = wide_expm1(fabs((double)x));
  float value = (float)copysign(0.5 * (less + less / (less + 1)), (double)x);
  return x != x ? x : value;
}""",
    "tan": """
float tan(float x) {
  int k;
  double left = wide_left(x, &k), s = wide_sin(left), c = wide_cos(left);
  double over = 1 / (k & 1 ? s : c);
  return x == 0 ? x : (float)((k & 1 ? -c : s) * over);
}""",
}
"""The functions by their names, in terms of those of `wide`."""

_HEAD: Final = """
#define ALWAYS inline __attribute__((always_inline))
#pragma OPENCL FP_CONTRACT ON
"""
_TAIL: Final = "#pragma OPENCL FP_CONTRACT OFF\n"


def _overloaded(name: str) -> str:
    """A function under a name of its own, beside the driver's for double precision."""
    head = f"\nfloat {name}(float"
    own = f"\nALWAYS float __attribute__((overloadable)) od_{name}(float"
    text = _SINGLE[name].replace(head, own)
    given = "double x, double y" if ", float" in _SINGLE[name].partition(")")[0] else "double x"
    passed = given.replace("double ", "")
    text += f"\nALWAYS double __attribute__((overloadable)) od_{name}({given}) "
    return text + f"{{ return {name}({passed}); }}\n"


def before(source: str) -> str:
    """What stands before a source for a CPU that computes in double precision.

    The functions under their own names are macros, and so come last.
    """
    called = {*re.findall(r"\b\w+(?=\()", source)}
    names = [name for name in _SINGLE if name in called]
    functions = "".join(map(_overloaded, names))
    macros = "".join(f"#define {name}(...) od_{name}(__VA_ARGS__)\n" for name in names)
    helpers = used(functions + source)
    return f"{_HEAD}{helpers}\n{functions}{_TAIL}{macros}" if helpers else ""
