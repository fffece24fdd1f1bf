"""Mathematical functions as LLVM assembly without branches or calls, so that loops vectorize.

Reduction and polynomials are those of Cephes (S. L. Moshier, "Methods and Programs for
Mathematical Functions", 1989; expf.c, logf.c, tanhf.c, exp.c, log.c, tanh.c, asin.c, atan.c):
within 2 units in the last place. The error function sums the Chebyshev series of the portable
kernels. NaNs and infinities come out as in C.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

from opdock.plugin import codegen

__all__ = ["BINARY", "DEFINED", "defined", "definition"]


def number(value: float, kind: str) -> str:
    """A constant of type `float` or `double`, exactly."""
    if kind == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class _Body:
    """Instructions of a function of %x, and %y if it has two arguments, as they are written."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.whole = "i32" if kind == "float" else "i64"
        self.suffix = "f32" if kind == "float" else "f64"
        self.lines: list[str] = []

    def put(self, text: str) -> str:
        """An instruction; its value's name."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def c(self, value: float) -> str:
        """A constant."""
        return number(value, self.kind)

    def op(self, name: str, a: str, b: str) -> str:
        """A binary operation on two values."""
        return self.put(f"{name} {self.kind} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """A * b + c with one rounding."""
        k = self.kind
        return self.put(f"call {k} @llvm.fma.{self.suffix}({k} {a}, {k} {b}, {k} {c})")

    def unary(self, name: str, a: str) -> str:
        """An intrinsic of one argument."""
        return self.put(f"call {self.kind} @llvm.{name}.{self.suffix}({self.kind} {a})")

    def test(self, how: str, a: str, b: str) -> str:
        """A comparison."""
        return self.put(f"fcmp {how} {self.kind} {a}, {b}")

    def pick(self, test: str, a: str, b: str) -> str:
        """A choice."""
        return self.put(f"select i1 {test}, {self.kind} {a}, {self.kind} {b}")

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        """A polynomial by Horner's rule, highest power first."""
        value = self.c(coefficients[0])
        for c in coefficients[1:]:
            value = self.fma(value, x, self.c(c))
        return value

    def bits(self, x: str) -> str:
        """A number's bits."""
        return self.put(f"bitcast {self.kind} {x} to {self.whole}")

    def unbits(self, n: str) -> str:
        """The number that bits stand for."""
        return self.put(f"bitcast {self.whole} {n} to {self.kind}")


def _power_of_two(b: _Body, n: str) -> str:
    """2**n for a whole n of normal size."""
    bias, shift = (127, 23) if b.kind == "float" else (1023, 52)
    whole = b.put(f"fptosi {b.kind} {n} to {b.whole}")
    biased = b.put(f"add {b.whole} {whole}, {bias}")
    return b.unbits(b.put(f"shl {b.whole} {biased}, {shift}"))


def _exp_reduced(b: _Body, x: str) -> tuple[str, str]:
    """(r, n) with x = r + n log(2) and |r| at most log(2) / 2."""
    n = b.unary("rint", b.op("fmul", x, b.c(1.44269504088896341)))
    if b.kind == "float":
        high, low = -0.693359375, 2.12194440e-4
    else:
        high, low = -6.93145751953125e-1, -1.42860682030941723212e-6
    return b.fma(n, b.c(low), b.fma(n, b.c(high), x)), n


_EXP_FLOAT = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
              5.0000001201e-1)  # fmt: skip
# Taylor's series serves in double precision: |r| is small, and fma is cheap.
_EXP_DOUBLE = (1 / 6227020800, 1 / 479001600, 1 / 39916800, 1 / 3628800, 1 / 362880, 1 / 40320,
               1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2)  # fmt: skip


def _expm1_of(b: _Body, r: str) -> str:
    """exp(r) - 1 for a reduced r."""
    tail = b.poly(r, _EXP_FLOAT if b.kind == "float" else _EXP_DOUBLE)
    return b.fma(tail, b.op("fmul", r, r), r)


def _clamped(b: _Body, x: str, low: float, high: float) -> str:
    """X within limits; a NaN stays."""
    x = b.pick(b.test("ogt", x, b.c(high)), b.c(high), x)
    return b.pick(b.test("olt", x, b.c(low)), b.c(low), x)


def _scaled(b: _Body, value: str, n: str) -> str:
    """Value * 2**n for n beyond the exponents of normal numbers: in two steps."""
    half = b.unary("floor", b.op("fmul", n, b.c(0.5)))
    rest = b.op("fsub", n, half)
    return b.op("fmul", b.op("fmul", value, _power_of_two(b, half)), _power_of_two(b, rest))


def _exp(b: _Body) -> str:
    limits = (-104.0, 89.0) if b.kind == "float" else (-746.0, 710.0)
    r, n = _exp_reduced(b, _clamped(b, "%x", *limits))
    grown = b.op("fadd", _expm1_of(b, r), b.c(1.0))
    return _nan_kept(b, _scaled(b, grown, n))


def _nan_kept(b: _Body, value: str) -> str:
    # fptosi of a NaN is poison: the result is replaced, whatever it was.
    return b.pick(b.test("uno", "%x", "%x"), "%x", value)


def _expm1(b: _Body) -> str:
    limits = (-20.0, 89.0) if b.kind == "float" else (-40.0, 710.0)
    r, n = _exp_reduced(b, _clamped(b, "%x", *limits))
    less = _expm1_of(b, r)
    # 2**n (e**r - 1) + (2**n - 1) keeps the small part where n is 0; a big 2**n comes in halves.
    top = b.test("ogt", n, b.c(126.0 if b.kind == "float" else 1022.0))
    m = b.pick(top, b.op("fsub", n, b.c(1.0)), n)
    two = _power_of_two(b, m)
    value = b.fma(two, less, b.op("fsub", two, b.c(1.0)))
    double = b.op("fmul", b.op("fmul", b.op("fadd", less, b.c(1.0)), two), b.c(2.0))
    value = b.pick(top, double, value)
    small = b.pick(b.test("oeq", "%x", b.c(0.0)), "%x", value)
    return _nan_kept(b, small)


_LOG_FLOAT = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
              1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
              3.3333331174e-1)  # fmt: skip
_LOG_P = (1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854e0,
          1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666e0)  # fmt: skip
_LOG_Q = (1.0, 1.12873587189167450590e1, 4.52279145837532221105e1, 8.29875266912776603211e1,
          7.11544750618563894466e1, 2.31251620126765340583e1)  # fmt: skip


def _log_of(b: _Body, x: str) -> str:
    """log(x) of a positive finite x."""
    single = b.kind == "float"
    tiny = b.test("olt", x, b.c(1.17549435e-38 if single else 2.2250738585072014e-308))
    lift = 23 if single else 52
    x = b.pick(tiny, b.op("fmul", x, b.c(2.0**lift)), x)
    bits = b.bits(x)
    shift, mask, bias = (23, 0x7FFFFF, 126) if single else (52, 0xFFFFFFFFFFFFF, 1022)
    exponent = b.put(f"sub {b.whole} {b.put(f'lshr {b.whole} {bits}, {shift}')}, {bias}")
    e = b.put(f"sitofp {b.whole} {exponent} to {b.kind}")
    e = b.op("fsub", e, b.pick(tiny, b.c(float(lift)), b.c(0.0)))
    half = 0x3F000000 if single else 0x3FE0000000000000
    fraction = b.put(f"or {b.whole} {b.put(f'and {b.whole} {bits}, {mask}')}, {half}")
    m = b.unbits(fraction)
    low = b.test("olt", m, b.c(0.70710678118654752440))
    e = b.op("fsub", e, b.pick(low, b.c(1.0), b.c(0.0)))
    m = b.op("fadd", b.op("fsub", m, b.c(1.0)), b.pick(low, m, b.c(0.0)))
    z = b.op("fmul", m, m)
    if single:
        y = b.op("fmul", b.op("fmul", b.poly(m, _LOG_FLOAT), m), z)
    else:
        ratio = b.op("fdiv", b.poly(m, _LOG_P), b.poly(m, _LOG_Q))
        y = b.op("fmul", b.op("fmul", m, z), ratio)
    y = b.fma(e, b.c(-2.121944400546905827679e-4), y)
    y = b.fma(z, b.c(-0.5), y)
    return b.fma(e, b.c(0.693359375), b.op("fadd", m, y))


def _log_edges(b: _Body, x: str, value: str) -> str:
    infinity = float("inf")
    value = b.pick(b.test("oeq", x, b.c(infinity)), x, value)
    value = b.pick(b.test("oeq", x, b.c(0.0)), b.c(-infinity), value)
    return b.pick(b.test("ult", x, b.c(0.0)), b.c(float("nan")), value)


def _log(b: _Body) -> str:
    return _log_edges(b, "%x", _log_of(b, "%x"))


def _log1p(b: _Body, x: str = "%x") -> str:
    # With u = 1 + x rounded, log(u) - (u - 1 - x) / u makes up for the rounding (W. Kahan).
    u = b.op("fadd", x, b.c(1.0))
    lost = b.op("fsub", b.op("fsub", u, b.c(1.0)), x)
    value = b.op("fsub", _log_of(b, u), b.op("fdiv", lost, u))
    value = _log_edges(b, u, value)
    return b.pick(b.test("oeq", x, b.c(0.0)), x, value)


_TANH_FLOAT = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
               -3.33332819422e-1)  # fmt: skip
_TANH_P = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_Q = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)


def _tanh(b: _Body) -> str:
    size = b.unary("fabs", "%x")
    single = b.kind == "float"
    doubled = b.op("fmul", _clamped(b, size, 0.0, 10.0 if single else 22.0), b.c(2.0))
    r, n = _exp_reduced(b, doubled)
    grown = b.op("fmul", b.op("fadd", _expm1_of(b, r), b.c(1.0)), _power_of_two(b, n))
    large = b.op("fsub", b.c(1.0), b.op("fdiv", b.c(2.0), b.op("fadd", grown, b.c(1.0))))
    z = b.op("fmul", size, size)
    if single:
        factor = b.poly(z, _TANH_FLOAT)
    else:
        factor = b.op("fdiv", b.poly(z, _TANH_P), b.poly(z, _TANH_Q))
    small = b.fma(b.op("fmul", factor, z), size, size)
    return _nan_kept(b, _signed(b, b.pick(b.test("olt", size, b.c(0.625)), small, large)))


def _signed(b: _Body, value: str) -> str:
    """An odd function's value of the size of %x, with its sign."""
    return b.put(f"call {b.kind} @llvm.copysign.{b.suffix}({b.kind} {value}, {b.kind} %x)")


def _chebyshev(b: _Body, t: str, coefficients: Sequence[float]) -> str:
    """A Chebyshev series at t in [-1, 1] by Clenshaw's recurrence, its last terms left out."""
    least = 2.0**-26 if b.kind == "float" else 2.0**-56
    kept = list(coefficients)
    while abs(kept[-1]) < least:
        kept.pop()
    doubled = b.op("fadd", t, t)
    later, earlier = b.c(kept[-1]), b.c(0.0)
    for c in reversed(kept[1:-1]):
        later, earlier = b.fma(doubled, later, b.op("fsub", b.c(c), earlier)), later
    return b.fma(t, later, b.op("fsub", b.c(kept[0]), earlier))


def _erf(b: _Body) -> str:
    one, size = b.c(1.0), b.unary("fabs", "%x")
    near = b.pick(b.test("olt", size, one), size, one)
    inner = b.fma(b.op("fmul", near, near), b.c(2.0), b.c(-1.0))
    small = b.op("fmul", near, _chebyshev(b, inner, codegen.SERIES["erf"]))
    far = b.pick(b.test("olt", size, b.c(6.0)), size, b.c(6.0))
    outer = b.op("fdiv", b.op("fsub", far, b.c(3.75)), b.op("fadd", far, b.c(3.75)))
    scaled = _chebyshev(b, outer, codegen.SERIES["erfcx"])
    r, n = _exp_reduced(b, b.put(f"fneg {b.kind} {b.op('fmul', far, far)}"))
    power = b.op("fmul", b.op("fadd", _expm1_of(b, r), one), _power_of_two(b, n))
    tail = b.op("fdiv", b.op("fmul", power, scaled), b.fma(far, b.c(2.0), one))
    value = b.pick(b.test("ole", size, one), small, b.op("fsub", one, tail))
    return _nan_kept(b, _signed(b, value))


# ---------------------------------------------------------------- in double precision
_PI: Final = 3.14159265358979323846
_PI_REST: Final = 1.2246467991473531772e-16
"""What pi has beyond double precision."""
_ATAN_P = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
           -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
_ATAN_Q = (1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
           4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip
_ASIN_P = (4.253011369004428248960e-3, -6.019598008014123785661e-1, 5.444622390564711410273,
           -1.626247967210700244449e1, 1.956261983317594739197e1,
           -8.198089802484824371615)  # fmt: skip
_ASIN_Q = (1.0, -1.474091372988853791896e1, 7.049610280856842141659e1, -1.471791292232726029859e2,
           1.395105614657485689735e2, -4.918853881490881290097e1)  # fmt: skip


def _atan(b: _Body, x: str = "") -> str:
    """Of %x, or of an x that is not negative."""
    odd, x = not x, x or b.unary("fabs", "%x")
    far, near = b.test("ogt", x, b.c(2.41421356237309504880)), b.test("ole", x, b.c(0.66))

    def by_range(one: str, other: str, rest: str) -> str:
        return b.pick(far, one, b.pick(near, other, rest))

    one = b.c(1.0)
    top = by_range(b.c(-1.0), x, b.op("fsub", x, one))
    t = b.op("fdiv", top, by_range(x, one, b.op("fadd", x, one)))
    z = b.op("fmul", t, t)
    ratio = b.op("fdiv", b.op("fmul", z, b.poly(z, _ATAN_P)), b.poly(z, _ATAN_Q))
    rest = by_range(b.c(_PI_REST / 2), b.c(0.0), b.c(_PI_REST / 4))
    start = by_range(b.c(_PI / 2), b.c(0.0), b.c(_PI / 4))
    value = b.op("fadd", start, b.op("fadd", b.fma(t, ratio, t), rest))
    return _signed(b, value) if odd else value


def _asin_of(b: _Body, x: str) -> str:
    """asin(x) of an x between 0 and 0.71."""
    z = b.op("fmul", x, x)
    ratio = b.op("fdiv", b.op("fmul", z, b.poly(z, _ASIN_P)), b.poly(z, _ASIN_Q))
    return b.fma(x, ratio, x)


def _halved(b: _Body, x: str) -> tuple[str, str]:
    """(whether x, not negative, is above a half, asin(x) or, above it, asin(sqrt((1 - x) / 2)))."""
    half = b.c(0.5)
    far = b.test("ogt", x, half)
    t = b.pick(far, b.unary("sqrt", b.op("fsub", half, b.op("fmul", half, x))), x)
    return far, _asin_of(b, t)


def _asin(b: _Body) -> str:
    far, angle = _halved(b, b.unary("fabs", "%x"))
    rest = b.op("fsub", b.c(_PI_REST / 2), b.op("fmul", angle, b.c(2.0)))
    return _signed(b, b.pick(far, b.op("fadd", b.c(_PI / 2), rest), angle))


def _acos(b: _Body) -> str:
    far, angle = _halved(b, b.unary("fabs", "%x"))
    negative = b.test("olt", "%x", b.c(0.0))
    doubled = b.op("fmul", angle, b.c(2.0))
    under = b.op("fadd", b.c(_PI), b.op("fsub", b.c(_PI_REST), doubled))
    beside = b.op("fsub", b.c(_PI_REST / 2), _signed(b, angle))
    beside = b.op("fadd", b.c(_PI / 2), beside)
    return b.pick(far, b.pick(negative, under, doubled), beside)


def _asinh(b: _Body) -> str:
    a = b.unary("fabs", "%x")
    z = b.op("fmul", a, a)
    root = b.unary("sqrt", b.op("fadd", z, b.c(1.0)))
    more = b.op("fadd", a, b.op("fdiv", z, b.op("fadd", root, b.c(1.0))))
    value = _log1p(b, more)
    return _signed(b, b.pick(b.test("oeq", a, b.c(float("inf"))), a, value))


def _acosh(b: _Body) -> str:
    t = b.op("fsub", "%x", b.c(1.0))
    value = _log1p(b, b.op("fadd", t, b.unary("sqrt", b.fma(t, t, b.op("fadd", t, t)))))
    return b.pick(b.test("olt", t, b.c(0.0)), b.c(float("nan")), value)


def _atanh(b: _Body) -> str:
    a = b.unary("fabs", "%x")
    ratio = b.op("fdiv", b.op("fadd", a, a), b.op("fsub", b.c(1.0), a))
    return _signed(b, b.op("fmul", b.c(0.5), _log1p(b, ratio)))


def _grown(b: _Body) -> tuple[str, str]:
    """(exp(|x|) - 1, the same plus 1) of an %x that came from single precision."""
    size = _clamped(b, b.unary("fabs", "%x"), 0.0, 100.0)
    r, n = _exp_reduced(b, size)
    two = _power_of_two(b, n)
    less = b.fma(two, _expm1_of(b, r), b.op("fsub", two, b.c(1.0)))
    return less, b.op("fadd", less, b.c(1.0))


def _sinh(b: _Body) -> str:
    less, grown = _grown(b)
    value = b.op("fmul", b.c(0.5), b.op("fadd", less, b.op("fdiv", less, grown)))
    return _nan_kept(b, _signed(b, value))


def _cosh(b: _Body) -> str:
    _, grown = _grown(b)
    value = b.op("fadd", grown, b.op("fdiv", b.c(1.0), grown))
    return _nan_kept(b, b.op("fmul", b.c(0.5), value))


def _atan2(b: _Body) -> str:
    """The angle of the point (%y, %x)."""
    one, zero, infinity = b.c(1.0), b.c(0.0), b.c(float("inf"))
    over, beside = b.unary("fabs", "%x"), b.unary("fabs", "%y")
    # The first argument is the height. Two infinities are as far from both axes.
    far = b.put(f"and i1 {b.test('oeq', over, infinity)}, {b.test('oeq', beside, infinity)}")
    ratio = b.pick(far, one, b.op("fdiv", over, beside))
    nowhere = b.put(f"and i1 {b.test('oeq', over, zero)}, {b.test('oeq', beside, zero)}")
    angle = b.pick(nowhere, zero, _atan(b, ratio))
    back = b.put(f"icmp slt i64 {b.bits('%y')}, 0")
    return _signed(b, b.pick(back, b.op("fsub", b.c(_PI), angle), angle))


DEFINED: dict[str, Callable[[_Body], str]] = {
    "exp": _exp, "expm1": _expm1, "log": _log, "log1p": _log1p, "tanh": _tanh, "erf": _erf,
    "asin": _asin, "acos": _acos, "atan": _atan, "asinh": _asinh, "acosh": _acosh,
    "atanh": _atanh, "sinh": _sinh, "cosh": _cosh, "atan2": _atan2,
}  # fmt: skip
"""The functions by their names in scalar expressions."""
BINARY: Final = frozenset({"atan2"})
"""Those of two arguments."""
_WIDE: Final = frozenset({
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "cosh", "atan2",
})  # fmt: skip
"""Those that are computed in double precision for single precision too."""
_SINGLE: Final = frozenset({"erf", "asin", "asinh", "acosh", "atanh", "sinh", "cosh"})
"""Those that are not exact enough for double precision."""


def defined(name: str, kind: str) -> bool:
    """Whether there is a definition of a function for "float" or "double"."""
    return name in DEFINED and (kind == "float" or name not in _SINGLE)


def definition(name: str, kind: str) -> str:
    """The function `@od_<name>_<kind>` of one argument, or two.

    Args:
        name: a key of `DEFINED`.
        kind: "float" or "double".
    """
    widened = kind == "float" and name in _WIDE
    body = _Body("double" if widened else kind)
    result = DEFINED[name](body)
    names = ("x", "y") if name in BINARY else ("x",)
    lines = body.lines
    if widened:
        lines = [*(f"  %{n} = fpext float %narrow.{n} to double" for n in names), *lines]
        lines.append(f"  %rounded = fptrunc double {result} to float")
        result = "%rounded"
    given = ", ".join(f"{kind} %{'narrow.' * widened}{n}" for n in names)
    text = "\n".join(lines)
    return (
        f"define internal {kind} @od_{name}_{kind}({given}) alwaysinline {{\n{text}\n"
        f"  ret {kind} {result}\n}}\n"
    )
