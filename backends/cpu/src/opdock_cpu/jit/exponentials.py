"""Exponentials, logarithms and what is made of them, without branches, so that loops vectorize.

Reduction and polynomials are those of Cephes (S. L. Moshier, "Methods and Programs for
Mathematical Functions", 1989; expf.c, logf.c, tanhf.c, exp.c, log.c, tanh.c).
"""

from __future__ import annotations

from typing import Final

from opdock_cpu.jit.body import Body

__all__ = [
    "clamped", "exp", "exp_normal", "exp_of", "exp_reduced", "expm1", "expm1_of", "log", "log1p",
    "log_edges", "log_of", "nan_kept", "power", "power_of_two", "signed", "tanh",
]  # fmt: skip


_WHOLE = {"float": 1.5 * 2.0**23, "double": 2.0**52}
"""What has whole numbers, added to it, at the end of its bits; negative ones too in `float`."""
_BIAS = {"float": 127, "double": 1023}
_FRACTION = {"float": 23, "double": 52}
"""Bits of a number's fraction."""


def power_of_two(b: Body, n: str) -> str:
    """2**n for a whole n of normal size."""
    # No conversion to an integer: few processors turn vectors of doubles into 64-bit ones, and
    # that of a NaN would be poison.
    moved = b.bits(b.op("fadd", n, b.c(_WHOLE[b.kind] + _BIAS[b.kind])))
    return b.unbits(b.put(f"shl {b.whole} {moved}, {_FRACTION[b.kind]}"))


def _exponent(b: Body, bits: str) -> str:
    """The exponent of a positive number, of which what is left is at least a half."""
    if b.kind == "double":
        place = b.put(f"or i64 {b.put(f'lshr i64 {bits}, 52')}, {0x4330000000000000}")
        return b.op("fsub", b.unbits(place), b.c(_WHOLE["double"] + 1022))
    whole = b.put(f"sub i32 {b.put(f'lshr i32 {bits}, 23')}, 126")
    return b.put(f"sitofp i32 {whole} to float")


def exp_reduced(b: Body, x: str) -> tuple[str, str]:
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


_ENOUGH = 2.0**-40
"""With so little left out, or less, sums need all their terms."""


def expm1_of(b: Body, r: str) -> str:
    """exp(r) - 1 for a reduced r."""
    double = _EXP_DOUBLE if b.least < _ENOUGH else _EXP_DOUBLE[4:]
    tail = b.poly(r, _EXP_FLOAT if b.kind == "float" else double)
    return b.fma(tail, b.op("fmul", r, r), r)


def clamped(b: Body, x: str, low: float, high: float) -> str:
    """X within limits; a NaN stays."""
    x = b.pick(b.test("ogt", x, b.c(high)), b.c(high), x)
    return b.pick(b.test("olt", x, b.c(low)), b.c(low), x)


def _scaled(b: Body, value: str, n: str) -> str:
    """Value * 2**n for n beyond the exponents of normal numbers: in two steps."""
    half = b.unary("floor", b.op("fmul", n, b.c(0.5)))
    rest = b.op("fsub", n, half)
    return b.op("fmul", b.op("fmul", value, power_of_two(b, half)), power_of_two(b, rest))


def exp_of(b: Body, x: str) -> str:
    """exp(x)."""
    limits = (-104.0, 89.0) if b.kind == "float" else (-746.0, 710.0)
    r, n = exp_reduced(b, clamped(b, x, *limits))
    return _scaled(b, b.op("fadd", expm1_of(b, r), b.c(1.0)), n)


def exp(b: Body) -> str:
    """The exponential function."""
    return exp_of(b, "%x")


def exp_normal(b: Body) -> str:
    """The same where it is a normal number; less is the least of these, more is infinite."""
    limits = (-87.3, 89.0) if b.kind == "float" else (-708.3, 710.0)
    r, n = exp_reduced(b, clamped(b, "%x", *limits))
    return b.op("fmul", b.op("fadd", expm1_of(b, r), b.c(1.0)), power_of_two(b, n))


def nan_kept(b: Body, value: str, x: str = "%x") -> str:
    """The value, or x if that is a NaN."""
    return b.pick(b.test("uno", x, x), x, value)


_ROOT_HALF: Final = 0x3F3504F3
"""The bits of sqrt(1/2) in single precision."""
_EXP2_FLOAT = (1.535336188319500e-4, 1.339887440266574e-3, 9.618437357674640e-3,
               5.550332471162809e-2, 2.402264791363012e-1, 6.931472028550421e-1)  # fmt: skip
_LOG2_E: Final = 1.44269504088896341


def _log2_of_size(b: Body, size: str) -> str:
    """The logarithm of a size to base 2, in double precision; of 0 and infinity too.

    With x = 2**e m and s = (m - 1) / (m + 1) it is e + 2 (s + s**3 / 3 + s**5 / 5 ...) / log(2).
    """
    tiny = b.test("olt", size, b.c(2.0**-126))
    whole = b.bits(b.pick(tiny, b.op("fmul", size, b.c(2.0**24)), size))
    places = b.put(f"ashr i32 {b.put(f'sub i32 {whole}, {_ROOT_HALF}')}, 23")
    m = b.unbits(b.put(f"sub i32 {whole}, {b.put(f'shl i32 {places}, 23')}"))
    e = b.op("fsub", b.put(f"sitofp i32 {places} to float"), b.pick(tiny, b.c(24.0), b.c(0.0)))
    infinity = float("inf")
    e = b.pick(b.test("oeq", size, b.c(0.0)), b.c(-infinity), e)
    e = b.pick(b.test("ueq", size, b.c(infinity)), size, e)  # a NaN as well
    wide = b.widened()
    m, e = (b.put(f"fpext float {v} to double") for v in (m, e))
    one = wide.c(1.0)
    s = wide.op("fdiv", wide.op("fsub", m, one), wide.op("fadd", m, one))
    series = wide.poly(wide.op("fmul", s, s), [2 * _LOG2_E / k for k in range(11, 0, -2)])
    return wide.fma(s, series, e)


def _exp2_of(b: Body, product: str) -> str:
    """2 to the power of a double within (-153, 130), in single precision."""
    wide = b.widened()
    n = wide.unary("rint", product)
    rest = b.put(f"fptrunc double {wide.op('fsub', product, n)} to float")
    count = b.put(f"freeze i32 {b.put(f'fptosi double {n} to i32')}")  # of a NaN it is poison
    half = b.put(f"ashr i32 {count}, 1")
    value = b.fma(b.poly(rest, _EXP2_FLOAT), rest, b.c(1.0))
    for part in (half, b.put(f"sub i32 {count}, {half}")):
        power = b.unbits(b.put(f"shl i32 {b.put(f'add i32 {part}, 127')}, 23"))
        value = b.op("fmul", value, power)
    return value


def power(b: Body) -> str:
    """%x to the power %y, of single precision: logarithm and product are in double precision."""
    one, zero, infinity = b.c(1.0), b.c(0.0), b.c(float("inf"))
    size = b.unary("fabs", "%x")
    endless = b.test("oeq", b.unary("fabs", "%y"), infinity)
    # Of 1 infinite powers are 1, where infinity times 0 would be no number.
    still = b.put(f"and i1 {b.test('oeq', size, one)}, {endless}")
    by = b.put(f"fpext float {b.pick(still, zero, '%y')} to double")
    wide = b.widened()
    product = wide.op("fmul", by, _log2_of_size(b, size))
    value = _exp2_of(b, clamped(wide, product, -152.0, 129.0))
    half = b.op("fmul", "%y", b.c(0.5))
    whole = b.test("oeq", "%y", b.unary("floor", "%y"))
    odd = b.put(f"and i1 {whole}, {b.test('one', half, b.unary('floor', half))}")
    minus = b.put(f"icmp slt i32 {b.bits('%x')}, 0")
    value = b.pick(b.put(f"and i1 {minus}, {odd}"), b.put(f"fneg float {value}"), value)
    below = b.put(f"and i1 {b.test('olt', '%x', zero)}, {b.test('one', size, infinity)}")
    none = b.put(f"and i1 {below}, {b.put(f'xor i1 {whole}, 1')}")
    value = b.pick(none, b.c(float("nan")), value)
    always = b.put(f"or i1 {b.test('oeq', '%x', one)}, {b.test('oeq', '%y', zero)}")
    return b.pick(always, one, value)


def expm1(b: Body) -> str:
    """The same less 1, exact near 0."""
    limits = (-20.0, 89.0) if b.kind == "float" else (-40.0, 710.0)
    r, n = exp_reduced(b, clamped(b, "%x", *limits))
    less = expm1_of(b, r)
    # 2**n (e**r - 1) + (2**n - 1) keeps the small part where n is 0; a big 2**n comes in halves.
    top = b.test("ogt", n, b.c(126.0 if b.kind == "float" else 1022.0))
    m = b.pick(top, b.op("fsub", n, b.c(1.0)), n)
    two = power_of_two(b, m)
    value = b.fma(two, less, b.op("fsub", two, b.c(1.0)))
    double = b.op("fmul", b.op("fmul", b.op("fadd", less, b.c(1.0)), two), b.c(2.0))
    value = b.pick(top, double, value)
    return b.pick(b.test("oeq", "%x", b.c(0.0)), "%x", value)


_LOG_FLOAT = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
              1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
              3.3333331174e-1)  # fmt: skip
_LOG_P = (1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854e0,
          1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666e0)  # fmt: skip
_LOG_Q = (1.0, 1.12873587189167450590e1, 4.52279145837532221105e1, 8.29875266912776603211e1,
          7.11544750618563894466e1, 2.31251620126765340583e1)  # fmt: skip


def log_of(b: Body, x: str) -> str:
    """log(x) of a positive finite x."""
    single = b.kind == "float"
    tiny = b.test("olt", x, b.c(1.17549435e-38 if single else 2.2250738585072014e-308))
    lift = 23 if single else 52
    x = b.pick(tiny, b.op("fmul", x, b.c(2.0**lift)), x)
    bits = b.bits(x)
    mask = 0x7FFFFF if single else 0xFFFFFFFFFFFFF
    e = b.op("fsub", _exponent(b, bits), b.pick(tiny, b.c(float(lift)), b.c(0.0)))
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


def log_edges(b: Body, x: str, value: str) -> str:
    """A logarithm of x where there is one: of 0 and infinity too, of no negative number."""
    infinity = float("inf")
    value = b.pick(b.test("oeq", x, b.c(infinity)), x, value)
    value = b.pick(b.test("oeq", x, b.c(0.0)), b.c(-infinity), value)
    return b.pick(b.test("ult", x, b.c(0.0)), b.c(float("nan")), value)


def log(b: Body) -> str:
    """The logarithm."""
    return log_edges(b, "%x", log_of(b, "%x"))


def log1p(b: Body, x: str = "%x") -> str:
    """log(1 + x), exact near 0."""
    # With u = 1 + x rounded, log(u) - (u - 1 - x) / u makes up for the rounding (W. Kahan).
    u = b.op("fadd", x, b.c(1.0))
    lost = b.op("fsub", b.op("fsub", u, b.c(1.0)), x)
    value = b.op("fsub", log_of(b, u), b.op("fdiv", lost, u))
    value = log_edges(b, u, value)
    return b.pick(b.test("oeq", x, b.c(0.0)), x, value)


_TANH_FLOAT = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
               -3.33332819422e-1)  # fmt: skip
_TANH_P = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_Q = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)


def tanh(b: Body) -> str:
    """The hyperbolic tangent."""
    size = b.unary("fabs", "%x")
    single = b.kind == "float"
    doubled = b.op("fmul", clamped(b, size, 0.0, 10.0 if single else 22.0), b.c(2.0))
    r, n = exp_reduced(b, doubled)
    grown = b.op("fmul", b.op("fadd", expm1_of(b, r), b.c(1.0)), power_of_two(b, n))
    z, near = b.op("fmul", size, size), b.test("olt", size, b.c(0.625))
    above, below = b.c(2.0), b.op("fadd", grown, b.c(1.0))
    if not single:  # one division serves both
        above = b.pick(near, b.poly(z, _TANH_P), above)
        below = b.pick(near, b.poly(z, _TANH_Q), below)
    ratio = b.op("fdiv", above, below)
    factor = b.poly(z, _TANH_FLOAT) if single else ratio
    small = b.fma(b.op("fmul", factor, z), size, size)
    return signed(b, b.pick(near, small, b.op("fsub", b.c(1.0), ratio)))


def signed(b: Body, value: str) -> str:
    """An odd function's value of the size of %x, with its sign."""
    return b.put(f"call {b.kind} @llvm.copysign.{b.suffix}({b.kind} {value}, {b.kind} %x)")
