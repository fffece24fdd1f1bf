"""Mathematical functions as LLVM assembly without branches or calls, so that loops vectorize.

They are within 2 units in the last place. NaNs and infinities come out as in C. Reduction and
polynomials of the angles are those of Cephes (asin.c, atan.c).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from opdock_cpu.jit.body import Body, number
from opdock_cpu.jit.exponentials import (
    clamped,
    exp,
    exp_normal,
    exp_reduced,
    expm1,
    expm1_of,
    log,
    log1p,
    power,
    power_of_two,
    signed,
    tanh,
)
from opdock_cpu.jit.quantiles import erfinv, ndtri
from opdock_cpu.jit.series import erf, erfc, i0e, i1e
from opdock_cpu.jit.trigonometry import cos, sin, tan

__all__ = ["ANGLES", "BINARY", "DEFINED", "EXP_NORMAL", "defined", "definition", "number"]


# ---------------------------------------------------------------- in double precision
_PI: Final = 3.14159265358979323846
_REST: Final = {"double": 1.2246467991473531772e-16, "float": -8.742278000372485e-8}
"""What pi has beyond a type's precision."""
_ATAN_P = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
           -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
_ATAN_Q = (1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
           4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip
_ASIN_P = (4.253011369004428248960e-3, -6.019598008014123785661e-1, 5.444622390564711410273,
           -1.626247967210700244449e1, 1.956261983317594739197e1,
           -8.198089802484824371615)  # fmt: skip
_ASIN_Q = (1.0, -1.474091372988853791896e1, 7.049610280856842141659e1, -1.471791292232726029859e2,
           1.395105614657485689735e2, -4.918853881490881290097e1)  # fmt: skip


_ASIN_FLOAT = (4.70350541824e-02, -3.07404315741e-03, 2.79635692959e-02, 2.96316854757e-02,
               4.46894446897e-02, 7.49989510956e-02, 1.66666669910e-01)  # fmt: skip
"""Of (asin(x) - x) / x**3, by powers of x**2."""


def _atan(b: Body, x: str = "") -> str:
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
    rest = by_range(b.c(_REST[b.kind] / 2), b.c(0.0), b.c(_REST[b.kind] / 4))
    start = by_range(b.c(_PI / 2), b.c(0.0), b.c(_PI / 4))
    value = b.op("fadd", start, b.op("fadd", b.fma(t, ratio, t), rest))
    return signed(b, value) if odd else value


def _asin_of(b: Body, x: str) -> str:
    """asin(x) of an x between 0 and 0.71."""
    z = b.op("fmul", x, x)
    if b.kind == "float":
        return b.fma(b.op("fmul", x, z), b.poly(z, _ASIN_FLOAT), x)
    ratio = b.op("fdiv", b.op("fmul", z, b.poly(z, _ASIN_P)), b.poly(z, _ASIN_Q))
    return b.fma(x, ratio, x)


def _halved(b: Body, x: str) -> tuple[str, str]:
    """(whether x, not negative, is large, asin(x) or, where it is, asin(sqrt((1 - x) / 2)))."""
    half = b.c(0.5)
    # Twice the second is taken from pi / 2, which costs digits unless it is small.
    far = b.test("ogt", x, b.c(0.6) if b.kind == "float" else half)
    t = b.pick(far, b.unary("sqrt", b.op("fsub", half, b.op("fmul", half, x))), x)
    return far, _asin_of(b, t)


def _asin(b: Body) -> str:
    far, angle = _halved(b, b.unary("fabs", "%x"))
    rest = b.op("fsub", b.c(_REST[b.kind] / 2), b.op("fmul", angle, b.c(2.0)))
    return signed(b, b.pick(far, b.op("fadd", b.c(_PI / 2), rest), angle))


def _acos(b: Body) -> str:
    far, angle = _halved(b, b.unary("fabs", "%x"))
    negative = b.test("olt", "%x", b.c(0.0))
    doubled = b.op("fmul", angle, b.c(2.0))
    under = b.op("fadd", b.c(_PI), b.op("fsub", b.c(_REST[b.kind]), doubled))
    beside = b.op("fsub", b.c(_REST[b.kind] / 2), signed(b, angle))
    beside = b.op("fadd", b.c(_PI / 2), beside)
    return b.pick(far, b.pick(negative, under, doubled), beside)


def _asinh(b: Body) -> str:
    a = b.unary("fabs", "%x")
    z = b.op("fmul", a, a)
    root = b.unary("sqrt", b.op("fadd", z, b.c(1.0)))
    more = b.op("fadd", a, b.op("fdiv", z, b.op("fadd", root, b.c(1.0))))
    value = log1p(b, more)
    return signed(b, b.pick(b.test("oeq", a, b.c(float("inf"))), a, value))


def _acosh(b: Body) -> str:
    t = b.op("fsub", "%x", b.c(1.0))
    value = log1p(b, b.op("fadd", t, b.unary("sqrt", b.fma(t, t, b.op("fadd", t, t)))))
    return b.pick(b.test("olt", t, b.c(0.0)), b.c(float("nan")), value)


def _atanh(b: Body) -> str:
    a = b.unary("fabs", "%x")
    ratio = b.op("fdiv", b.op("fadd", a, a), b.op("fsub", b.c(1.0), a))
    return signed(b, b.op("fmul", b.c(0.5), log1p(b, ratio)))


def _grown(b: Body) -> tuple[str, str]:
    """(exp(|x|) - 1, the same plus 1) of an %x that came from single precision."""
    size = clamped(b, b.unary("fabs", "%x"), 0.0, 100.0)
    r, n = exp_reduced(b, size)
    two = power_of_two(b, n)
    less = b.fma(two, expm1_of(b, r), b.op("fsub", two, b.c(1.0)))
    return less, b.op("fadd", less, b.c(1.0))


def _sinh(b: Body) -> str:
    less, grown = _grown(b)
    value = b.op("fmul", b.c(0.5), b.op("fadd", less, b.op("fdiv", less, grown)))
    return signed(b, value)


def _cosh(b: Body) -> str:
    _, grown = _grown(b)
    value = b.op("fadd", grown, b.op("fdiv", b.c(1.0), grown))
    return b.op("fmul", b.c(0.5), value)


def _atan2(b: Body) -> str:
    """The angle of the point (%y, %x)."""
    one, zero, infinity = b.c(1.0), b.c(0.0), b.c(float("inf"))
    over, beside = b.unary("fabs", "%x"), b.unary("fabs", "%y")
    # The first argument is the height. Two infinities are as far from both axes.
    far = b.put(f"and i1 {b.test('oeq', over, infinity)}, {b.test('oeq', beside, infinity)}")
    ratio = b.pick(far, one, b.op("fdiv", over, beside))
    nowhere = b.put(f"and i1 {b.test('oeq', over, zero)}, {b.test('oeq', beside, zero)}")
    angle = b.pick(nowhere, zero, _atan(b, ratio))
    back = b.put(f"icmp slt i64 {b.bits('%y')}, 0")
    return signed(b, b.pick(back, b.op("fsub", b.c(_PI), angle), angle))


DEFINED: dict[str, Callable[[Body], str]] = {
    "exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "tanh": tanh, "erf": erf,
    "asin": _asin, "acos": _acos, "atan": _atan, "asinh": _asinh, "acosh": _acosh,
    "atanh": _atanh, "sinh": _sinh, "cosh": _cosh, "atan2": _atan2, "pow": power,
    "erfc": erfc, "i0e": i0e, "i1e": i1e, "erfinv": erfinv, "ndtri": ndtri,
}  # fmt: skip
"""The functions by their names in scalar expressions."""
EXP_NORMAL: Final = "exp_normal"
"""The exponential where those of its values that are no normal numbers are not seen."""
ANGLES: Final[dict[str, Callable[[Body], str]]] = {
    "sin": sin, "cos": cos, "tan": tan, "sin_near": partial(sin, near=True),
    "cos_near": partial(cos, near=True), "tan_near": partial(tan, near=True),
}  # fmt: skip
"""Those of single precision that loops call, which look first how large angles are."""
BINARY: Final = frozenset({"atan2", "pow"})
"""Those of two arguments."""
_WIDE: Final = frozenset({
    "atan", "asinh", "acosh", "atanh", "sinh", "cosh", "atan2", "erfc", "i0e", "i1e", "erfinv",
    "ndtri",
})  # fmt: skip
"""Those that are computed in double precision for single precision too."""
_SINGLE: Final = frozenset({
    "asin", "asinh", "acosh", "atanh", "sinh", "cosh", "pow", "erfc", "i0e", "i1e", "erfinv",
    "ndtri",
})  # fmt: skip
"""Those that are not exact enough for double precision."""


def defined(name: str, kind: str) -> bool:
    """Whether there is a definition of a function for "float" or "double"."""
    return name == EXP_NORMAL or (name in DEFINED and (kind == "float" or name not in _SINGLE))


def definition(name: str, kind: str) -> str:
    """The function `@od_<name>_<kind>` of one argument, or two.

    Args:
        name: a key of `DEFINED` or `ANGLES`, or `EXP_NORMAL`.
        kind: "float" or "double".
    """
    widened = kind == "float" and name in _WIDE
    body = Body("double" if widened else kind, widened)
    result = (exp_normal if name == EXP_NORMAL else DEFINED.get(name) or ANGLES[name])(body)
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
