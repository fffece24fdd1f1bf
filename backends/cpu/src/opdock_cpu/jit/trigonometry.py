"""Sine, cosine and tangent of every finite number of single precision, without branches.

An angle is counted in quarters of a turn, of which only the last two bits before the point and what
is behind it matter. So of 2 / pi only those bits count whose products with the angle's own come to
stand there (M. H. Payne and R. N. Hanek, "Radian Reduction for Trigonometric Functions", 1983): the
first ones for angles below 2**50, and for larger ones those that begin 27, 54 or 81 bits later.
The polynomials of sine and cosine are those of Cephes (sinf.c).
"""

from __future__ import annotations

import math
from typing import Final

from opdock_cpu.jit.body import Body

__all__ = ["NEAR", "cos", "sin", "tan"]

_DIGITS: Final = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561
_BEHIND: Final = 256
"""So many bits of 2 / pi."""
_LATER: Final = (0, 27, 54, 81)
_BELOW: Final = 50
"""Bits that begin so much later serve angles below 2 to the power of this and as much."""
NEAR: Final = 2.0**16
"""Angles below it need no more than 82 bits of 2 / pi."""
_SHIFTER: Final = 1.5 * 2.0**52
"""What has whole numbers of both signs at the end of a double's bits."""
_SINE: Final = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE: Final = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_TANGENT: Final = (
    4.58401979715359e-3, -3.27847186230186e-4, 1.1161590286602e-2, 2.11580567990707e-2,
    5.40836100152038e-2, 1.33324577394015e-1, 3.33333556122246e-1,
)  # fmt: skip
"""(tan(x) / x - 1) / x**2 in powers of x**2, fitted for the least error of tan(x) to x = 0.8."""


def _parts(later: int) -> tuple[float, float, float]:
    """2 / pi without what makes whole turns, in parts of 29, 29 and 53 bits.

    The product of one of the first two and an angle, which has 24 bits, is exact.
    """
    rest = _DIGITS & (1 << _BEHIND - later + 2) - 1
    found, behind = [], later
    for bits in (27, 29, 53):
        behind += bits
        part = rest >> _BEHIND - behind
        rest -= part << _BEHIND - behind
        found.append(part)
    if found[0] >> 28:
        found[0] -= 1 << 29  # three quarters forward are one back
    first, second, third = found
    return (
        math.ldexp(first, -later - 27), math.ldexp(second, -later - 56),
        math.ldexp(third, -later - 109),
    )  # fmt: skip


def _reduced(b: Body, near: bool) -> tuple[str, str]:
    """(what is left of %x within an eighth of a turn, in double precision, quarters before it)."""
    wide = b.widened()
    x = b.put("fpext float %x to double")
    first, second, third = _parts(0)
    if near:
        parts = [wide.c(first), wide.c(second + third)]
    else:
        parts = _chosen(wide, x)
    # Of each product the whole numbers go before the next one comes: so none is rounded.
    count, quarters = wide.c(-0.0), ""
    for part in parts:
        count = wide.fma(x, part, count)
        if near and part is parts[-1]:
            break  # by so little it may be more than an eighth
        shifted = wide.op("fadd", count, wide.c(_SHIFTER))
        count = wide.op("fsub", count, wide.op("fsub", shifted, wide.c(_SHIFTER)))
        whole = wide.bits(shifted)
        quarters = b.put(f"add i64 {quarters}, {whole}") if quarters else whole
    return wide.op("fmul", count, wide.c(math.pi / 2)), b.put(f"trunc i64 {quarters} to i32")


def _chosen(wide: Body, x: str) -> list[str]:
    """The parts of 2 / pi for an angle."""
    size, found = wide.unary("fabs", x), list(map(wide.c, _parts(0)))
    for later in _LATER[1:]:
        far = wide.test("oge", size, wide.c(2.0 ** (_BELOW + later - 27)))
        parts = zip(map(wide.c, _parts(later)), found, strict=True)
        found = [wide.pick(far, more, less) for more, less in parts]
    return found


def _signed(b: Body, value: str, angle: str) -> str:
    """A value with an angle's sign, which zeros have lost."""
    return b.put(f"call float @llvm.copysign.f32(float {value}, float {angle})")


def _odd(b: Body, quarters: str) -> str:
    return b.put(f"trunc i32 {quarters} to i1")


def _turned(b: Body, further: int, near: bool) -> str:
    """The sine of so many quarters further."""
    exact, quarters = _reduced(b, near)
    angle = b.put(f"fptrunc double {exact} to float")
    if further:
        quarters = b.put(f"add i32 {quarters}, {further}")
    z = b.op("fmul", angle, angle)
    sine = b.fma(b.op("fmul", b.poly(z, _SINE), z), angle, angle)
    less = b.fma(z, b.c(-0.5), b.c(1.0))
    cosine = b.fma(b.op("fmul", z, z), b.poly(z, _COSINE), less)
    value = b.bits(b.pick(_odd(b, quarters), cosine, _signed(b, sine, angle)))
    half = b.put(f"shl i32 {b.put(f'lshr i32 {quarters}, 1')}, 31")
    return b.unbits(b.put(f"xor i32 {value}, {half}"))


def _sloped(b: Body, near: bool) -> str:
    """The tangent; what the angle loses when it is rounded counts, times the slope there."""
    exact, quarters = _reduced(b, near)
    angle = b.put(f"fptrunc double {exact} to float")
    back = b.put(f"fpext float {angle} to double")
    lost = b.put(f"fptrunc double {b.widened().op('fsub', exact, back)} to float")
    z, one = b.op("fmul", angle, angle), b.c(1.0)
    value = b.op("fmul", b.op("fmul", b.poly(z, _TANGENT), z), angle)
    slope = b.fma(angle, angle, one)
    value = b.op("fadd", angle, b.fma(lost, slope, value))
    value, odd = _signed(b, value, angle), _odd(b, quarters)
    return b.op("fdiv", b.pick(odd, b.c(-1.0), value), b.pick(odd, value, one))


def sin(b: Body, near: bool = False) -> str:
    """The sine of an %x of single precision, below `NEAR` if that is said."""
    return _turned(b, 0, near)


def cos(b: Body, near: bool = False) -> str:
    """The cosine, as `sin`."""
    return _turned(b, 1, near)


def tan(b: Body, near: bool = False) -> str:
    """The tangent, as `sin`."""
    return _sloped(b, near)
