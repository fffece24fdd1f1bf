"""Inverses of distribution functions, without branches, so that loops vectorize.

With w = -log(1 - x**2) the inverse of the error function is x times a smooth function of w near 0,
and one of the root of w further out. The coefficients are fits to it, to nine digits.
"""

from __future__ import annotations

from typing import Final

from opdock_cpu.jit.body import Body
from opdock_cpu.jit.exponentials import log_of

__all__ = ["erfinv", "ndtri"]

_BORDERS: Final = (5.0, 17.4)
"""Where one polynomial ends and the next begins; single precision has no argument of `erfinv` that
is beyond the second."""
_CENTRES: Final = (2.5, 3.2, 7.2)
"""Of w up to the first border, then of its root."""
_NEAR: Final = (
    4.351147337416693e-10, -8.739830967512921e-09, 1.648717681189567e-08, 4.654287304168398e-07,
    -3.426175951733468e-06, -4.959743494908093e-06, 2.182639231445860e-04, -1.252748416456294e-03,
    -4.177324921933997e-03, 2.466402893894100e-01, 1.501409351728240e+00,
)  # fmt: skip
_MIDDLE: Final = (
    -3.272708708516421e-05, 9.971286433408271e-05, -3.517547001125722e-05, -3.579703215205444e-04,
    1.089712829587314e-03, -1.993999516872128e-03, 2.948343648779513e-03, -4.293898654253180e-03,
    5.973367940998956e-03, 1.004692426406016e+00, 3.033636571838326e+00,
)  # fmt: skip
_FAR: Final = (
    2.705593677138942e-10, -1.728025331127037e-09, 5.023641272991068e-09, -3.425916327058248e-08,
    2.558676417322587e-07, -1.315893709622488e-06, 4.590569878005793e-06, 1.058204974342292e-05,
    -5.075370984377830e-04, 1.008391469549451e+00, 7.070718327240777e+00,
)  # fmt: skip
"""The coefficients, highest power first."""


def _over(b: Body, rest: str, far: bool) -> str:
    """The inverse of the error function over its argument x.

    Args:
        b: the instructions.
        rest: 1 - x**2.
        far: whether x may be closer to 1 than any number of single precision.
    """
    w = b.put(f"fneg {b.kind} {log_of(b, rest)}")
    near, beyond = b.test("olt", w, b.c(_BORDERS[0])), b.test("ogt", w, b.c(_BORDERS[1]))
    first, second, third = map(b.c, _CENTRES)
    place = b.op("fsub", b.unary("sqrt", w), b.pick(beyond, third, second) if far else second)
    place = b.pick(near, b.op("fsub", w, first), place)
    value = ""
    for one, two, three in zip(_NEAR, _MIDDLE, _FAR, strict=True):
        c = b.pick(near, b.c(one), b.pick(beyond, b.c(three), b.c(two)) if far else b.c(two))
        value = b.fma(value, place, c) if value else c
    return value


def _product(b: Body, x: str, rest: str, far: bool) -> str:
    """That times x: infinite with the sign of x where `rest` is 0, and none where it is less."""
    endless = b.put(
        f"call {b.kind} @llvm.copysign.{b.suffix}({b.kind} {b.c(float('inf'))}, {b.kind} {x})"
    )
    value = b.op("fadd", b.op("fmul", x, _over(b, rest, far)), b.c(0.0))  # no zero is negative
    value = b.pick(b.test("oeq", rest, b.c(0.0)), endless, value)
    return b.pick(b.test("oge", rest, b.c(0.0)), value, b.c(float("nan")))


def erfinv(b: Body) -> str:
    """The inverse of the error function, of an %x that came from single precision."""
    one = b.c(1.0)
    rest = b.op("fmul", b.op("fsub", one, "%x"), b.op("fadd", one, "%x"))
    return _product(b, "%x", rest, far=False)


def ndtri(b: Body) -> str:
    """The quantile of the normal distribution, of an %x that came from single precision."""
    one, root = b.c(1.0), b.c(2.0**0.5)
    x = b.op("fmul", b.op("fadd", "%x", b.op("fsub", "%x", one)), root)
    rest = b.op("fmul", b.op("fmul", "%x", b.op("fsub", one, "%x")), b.c(4.0))
    return _product(b, x, rest, far=True)
