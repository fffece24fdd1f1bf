"""Functions that are sums of Chebyshev series, the coefficients those of the portable kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from opdock.plugin import codegen
from opdock_cpu.jit.body import Body
from opdock_cpu.jit.exponentials import exp_reduced, expm1_of, nan_kept, power_of_two, signed

__all__ = ["erf", "erfc", "i0e", "i1e"]


_POWERS: Final = 2.0**-40
"""What is left out of sums that are narrowed to single precision is more."""


def _chebyshev(b: Body, t: str, coefficients: Sequence[float]) -> str:
    """A Chebyshev series at t in [-1, 1], its last terms left out, by Clenshaw's recurrence."""
    kept = list(coefficients)
    while abs(kept[-1]) < b.least:
        kept.pop()
    if b.kind == "double" and b.least > _POWERS:
        # Powers cost half the instructions, and a few digits that a result to be narrowed has.
        return b.poly(t, np.polynomial.chebyshev.cheb2poly(kept)[::-1].tolist())
    doubled = b.op("fadd", t, t)
    later, earlier = b.c(kept[-1]), b.c(0.0)
    for c in reversed(kept[1:-1]):
        later, earlier = b.fma(doubled, later, b.op("fsub", b.c(c), earlier)), later
    return b.fma(t, later, b.op("fsub", b.c(kept[0]), earlier))


def _parts(b: Body, limit: float) -> tuple[str, str, str]:
    """(|x|, erf of what is at most 1 of it, erfc of what is at least 1 of it, up to a limit)."""
    one, size = b.c(1.0), b.unary("fabs", "%x")
    near = b.pick(b.test("olt", size, one), size, one)
    inner = b.fma(b.op("fmul", near, near), b.c(2.0), b.c(-1.0))
    small = b.op("fmul", near, _chebyshev(b, inner, codegen.SERIES["erf"]))
    far = b.pick(b.test("olt", size, b.c(limit)), size, b.c(limit))
    outer = b.op("fdiv", b.op("fsub", far, b.c(3.75)), b.op("fadd", far, b.c(3.75)))
    scaled = _chebyshev(b, outer, codegen.SERIES["erfcx"])
    r, n = exp_reduced(b, b.put(f"fneg {b.kind} {b.op('fmul', far, far)}"))
    power = b.op("fmul", b.op("fadd", expm1_of(b, r), one), power_of_two(b, n))
    tail = b.op("fdiv", b.op("fmul", power, scaled), b.fma(far, b.c(2.0), one))
    return size, small, tail


# Quotients of polynomials for double precision, those of Cephes (ndtr.c): erf(x) / x in x**2, up to
# 1, and erfc(x) exp(x**2) up to 8.
_NEAR_T: Final = (
    0.0, 9.60497373987051638749, 9.00260197203842689217e1, 2.23200534594684319226e3,
    7.00332514112805075473e3, 5.55923013010394962768e4,
)  # fmt: skip
_NEAR_U: Final = (
    1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
    2.26290000613890934246e4, 4.92673942608635921086e4,
)  # fmt: skip
_NEAR_REST: Final = tuple(t - u for t, u in zip(_NEAR_T, _NEAR_U, strict=True))
"""What the quotient has beyond 1, which is rounded less."""
_FAR_P: Final = (
    2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687,
    4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
    9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
)  # fmt: skip
_FAR_Q: Final = (
    1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
    9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
    1.65666309194161350182e3, 5.57535340817727675546e2,
)  # fmt: skip


def _erf_double(b: Body) -> str:
    """The error function in double precision, of which beyond 6 nothing is missing to 1."""
    size, one, six = b.unary("fabs", "%x"), b.c(1.0), b.c(6.0)
    z, near = b.op("fmul", size, size), b.test("ole", size, one)
    far = b.pick(b.test("olt", size, six), size, six)
    # One division serves both.
    above = b.pick(near, b.poly(z, _NEAR_REST), b.poly(far, _FAR_P))
    below = b.pick(near, b.poly(z, _NEAR_U), b.poly(far, _FAR_Q))
    ratio = b.op("fdiv", above, below)
    r, n = exp_reduced(b, b.put(f"fneg double {b.op('fmul', far, far)}"))
    power = b.op("fmul", b.op("fadd", expm1_of(b, r), one), power_of_two(b, n))
    tail = b.op("fsub", one, b.op("fmul", power, ratio))
    value = b.pick(near, b.fma(size, ratio, size), tail)
    return nan_kept(b, signed(b, value))


def erf(b: Body) -> str:
    """The error function."""
    one = b.c(1.0)
    if b.kind == "double":
        return _erf_double(b)
    size, small, tail = _parts(b, 6.0)
    value = b.pick(b.test("ole", size, one), small, b.op("fsub", one, tail))
    return nan_kept(b, signed(b, value))


def erfc(b: Body) -> str:
    """1 less the error function, of an %x that came from single precision."""
    one = b.c(1.0)
    size, small, tail = _parts(b, 11.0)
    beyond = b.pick(b.test("olt", "%x", one), b.op("fsub", b.c(2.0), tail), tail)
    near = b.op("fsub", one, signed(b, small))
    return nan_kept(b, b.pick(b.test("ole", size, one), near, beyond))


def _bessel(b: Body, order: int) -> tuple[str, str, str]:
    """(whether |x| is at most 8, the series there, the function of |x| elsewhere)."""
    size, eight = b.unary("fabs", "%x"), b.c(8.0)
    small = b.test("ole", size, eight)
    inside, beyond = b.pick(small, size, eight), b.pick(small, eight, size)
    near = _chebyshev(b, b.fma(inside, b.c(0.25), b.c(-1.0)), codegen.SERIES[f"i{order}e_near"])
    place = b.op("fsub", b.op("fdiv", b.c(16.0), beyond), b.c(1.0))
    far = _chebyshev(b, place, codegen.SERIES[f"i{order}e_far"])
    return small, near, b.op("fdiv", far, b.unary("sqrt", beyond))


def i0e(b: Body) -> str:
    """exp(-|x|) times the modified Bessel function of order 0."""
    return b.pick(*_bessel(b, 0))


def i1e(b: Body) -> str:
    """The same of order 1; the series near 0 is that of the function over x."""
    small, near, far = _bessel(b, 1)
    size = b.unary("fabs", "%x")
    value = b.pick(small, b.op("fmul", near, size), far)
    # Of minus zero it is zero, as TF has it.
    minus = b.test("olt", "%x", b.c(0.0))
    return nan_kept(b, b.pick(minus, b.put(f"fneg {b.kind} {value}"), value))
