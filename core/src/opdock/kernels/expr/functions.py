"""The functions of scalar expressions: one table with each function's meaning, types and value.

Everything that gives expressions a form reads this table: the evaluator over array namespaces,
and the code generators of backends (which add their own spelling under the same names). A backend
that lacks a spelling for a function simply does not take expressions that use it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.kernels.array_api import fails
from opdock.late import record

Array = Any
Evaluate = Callable[..., Array]

DIVISION_BY_ZERO: Final = "Integer division by zero"
NEGATIVE_POWER: Final = "Integers to negative integer powers are not allowed"
_COMPLEX_OF: Final = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
_BOOL: Final = frozenset({dtypes.bool_})


@record(frozen=True, slots=True, kw_only=True)
class Function:
    """One function of scalar expressions.

    Attributes:
        name: its name in expressions.
        meaning: what it computes, for readers and for writers of code generators.
        arity: the number of arguments.
        domain: the element types it takes. All arguments have one type, but for `where`, whose
            first argument is a bool.
        result: "same" as the arguments, "bool", "real" (the type of a complex type's parts),
            "complex" (the type that has the argument type as parts) or "uint8".
        evaluate: the value over an array namespace: `evaluate(xp, *arrays)`.
        array: the function of the namespace that `evaluate` just calls for the types `plain`,
            with a new array for a result.
        plain: those types.
        symbol: the operator that writes it, if there is one.
        raises: the types for which some argument values are errors; generated code that cannot
            report an error must leave those to the plain kernels.
        needs: names beyond the array API standard 2023.12 that `evaluate` takes from `xp`.
        views: whether the value may be memory of the argument.
    """

    name: str
    meaning: str
    arity: int
    domain: frozenset[DType]
    result: str
    evaluate: Evaluate
    array: str = ""
    plain: frozenset[DType] = frozenset()
    symbol: str = ""
    raises: frozenset[DType] = field(default_factory=frozenset)
    needs: tuple[str, ...] = ()
    views: bool = False

    def result_type(self, operand: DType) -> DType:
        """The type of the result for arguments of type `operand`."""
        match self.result:
            case "same":
                return operand
            case "bool":
                return dtypes.bool_
            case "uint8":
                return dtypes.uint8
            case "real":
                return operand.real_dtype
            case _:
                return _COMPLEX_OF[operand]


FUNCTIONS: Final[dict[str, Function]] = {}

_REAL_FLOATS = dtypes.FLOATS
_INEXACT = dtypes.FLOATS | dtypes.COMPLEX
_NUMBERS = dtypes.NUMBERS
_REALS = dtypes.REALS
_ORDERED = dtypes.REALS
_ANY = dtypes.NUMBERS | _BOOL


def _add(
    name: str,
    meaning: str,
    domain: frozenset[DType],
    evaluate: Evaluate | str = "",
    *,
    array: str = "",
    plain: frozenset[DType] | None = None,
    arity: int = 1,
    result: str = "same",
    symbol: str = "",
    raises: frozenset[DType] = frozenset(),
    needs: tuple[str, ...] = (),
    views: bool = False,
) -> None:
    if isinstance(evaluate, str):
        array = evaluate or name
        plain, evaluate = domain if plain is None else plain, _standard(array)
    FUNCTIONS[name] = Function(
        name=name, meaning=meaning, arity=arity, domain=domain, result=result, symbol=symbol,
        evaluate=evaluate, array=array, plain=plain or frozenset(), raises=raises, needs=needs,
        views=views,
    )  # fmt: skip


def _standard(name: str) -> Evaluate:
    """The array API's function of that name."""
    return lambda xp, *args: getattr(xp, name)(*args)


def _special(name: str) -> Evaluate:
    """The special function of that name: the namespace's, or the portable one."""

    def evaluate(xp: Any, *args: Array) -> Array:
        own = getattr(xp, "special_functions", {}).get(name)
        if own is not None:
            return own(*args)
        special = importlib.import_module("opdock.kernels.portable.special")
        return getattr(special, name)(xp, *args)

    return evaluate


def _is_integer(xp: Any, x: Array) -> bool:
    return bool(xp.isdtype(x.dtype, "integral"))


# ---------------------------------------------------------------- arithmetic with integer cases
def _check_divisor(xp: Any, x: Array, y: Array) -> None:
    # Nothing is divided where there is nothing to divide.
    if 0 not in x.shape and fails(xp, xp.any(y == 0)):
        raise errors.InvalidArgumentError(None, None, DIVISION_BY_ZERO)


def _divide(xp: Any, x: Array, y: Array) -> Array:
    if not _is_integer(xp, x):
        return xp.divide(x, y)
    _check_divisor(xp, x, y)
    quotient = xp.floor_divide(x, y)
    inexact = xp.logical_and(xp.remainder(x, y) != 0, xp.logical_xor(x < 0, y < 0))
    return quotient + xp.astype(inexact, quotient.dtype)


def _floor_divide(xp: Any, x: Array, y: Array) -> Array:
    if not _is_integer(xp, x):
        return xp.floor(xp.divide(x, y))
    _check_divisor(xp, x, y)
    return xp.floor_divide(x, y)


def _floor_mod(xp: Any, x: Array, y: Array) -> Array:
    if _is_integer(xp, x):
        _check_divisor(xp, x, y)
    return xp.remainder(x, y)


def _truncate_mod(xp: Any, x: Array, y: Array) -> Array:
    if not _is_integer(xp, x):
        if (own := getattr(xp, "fmod", None)) is not None:
            return own(x, y)
        size = xp.remainder(xp.abs(x), xp.abs(y))
        return xp.where(xp.signbit(x), -size, size)
    _check_divisor(xp, x, y)
    floored = xp.remainder(x, y)
    wrong_sign = xp.logical_and(floored != 0, xp.logical_xor(x < 0, y < 0))
    return floored - xp.where(wrong_sign, y, xp.zeros_like(y))


def _power(xp: Any, x: Array, y: Array) -> Array:
    if _is_integer(xp, x) and fails(xp, xp.any(y < 0)):
        raise errors.InvalidArgumentError(None, None, NEGATIVE_POWER)
    return xp.pow(x, y)


def _left_shift(xp: Any, x: Array, y: Array) -> Array:
    return xp.bitwise_left_shift(x, _clamped_shift(xp, y))


def _right_shift(xp: Any, x: Array, y: Array) -> Array:
    return xp.bitwise_right_shift(x, _clamped_shift(xp, y))


def _clamped_shift(xp: Any, y: Array) -> Array:
    return xp.clip(y, 0, xp.iinfo(y.dtype).bits - 1)


def _population_count(xp: Any, x: Array) -> Array:
    one = xp.ones_like(x)
    count = xp.zeros_like(x)
    for bit in range(xp.iinfo(x.dtype).bits):
        shift = xp.asarray(bit, dtype=x.dtype)
        count = count + xp.bitwise_and(xp.bitwise_right_shift(x, shift), one)
    return xp.astype(count, xp.uint8)


def _complex(xp: Any, real: Array, imag: Array) -> Array:
    kind = xp.complex64 if real.dtype == xp.float32 else xp.complex128
    return xp.astype(real, kind) + xp.astype(imag, kind) * 1j


def _conjugate(xp: Any, x: Array) -> Array:
    return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else x


def _angle(xp: Any, x: Array) -> Array:
    return xp.atan2(xp.imag(x), xp.real(x))


_add("add", "x + y", _NUMBERS, arity=2, symbol="+")
_add("sub", "x - y", _NUMBERS, "subtract", arity=2, symbol="-")
_add("mul", "x * y", _NUMBERS, "multiply", arity=2, symbol="*")
_add(
    "div",
    "x / y; integers divide towards zero, a zero divisor is an error",
    _NUMBERS,
    _divide,
    array="divide",
    plain=_INEXACT,
    arity=2,
    symbol="/",
    raises=dtypes.INTS,
)
_add(
    "floordiv",
    "floor(x / y); for integers a zero divisor is an error",
    _REALS,
    _floor_divide,
    arity=2,
    symbol="//",
    raises=dtypes.INTS,
)
_add(
    "mod",
    "x - floor(x / y) * y, with the sign of y; for integers a zero divisor is an error",
    _REALS,
    _floor_mod,
    array="remainder",
    plain=_REAL_FLOATS,
    arity=2,
    symbol="%",
    raises=dtypes.INTS,
)
_add(
    "fmod",
    "x - trunc(x / y) * y, with the sign of x; for integers a zero divisor is an error",
    _REALS,
    _truncate_mod,
    arity=2,
    raises=dtypes.INTS,
)
_add(
    "pow",
    "x to the power y; for integers a negative y is an error",
    _NUMBERS,
    _power,
    array="pow",
    plain=_INEXACT,
    arity=2,
    symbol="**",
    raises=dtypes.INTS,
)
_add("neg", "-x", _NUMBERS, "negative", symbol="-")
_add("abs", "|x|; the modulus of a complex number", _NUMBERS, result="real")
_add("sign", "-1, 0 or 1 by the sign of x; x / |x| for complex numbers; NaN for NaN", _NUMBERS)
_add("max", "the larger of x and y, NaN if either is NaN", _REALS, "maximum", arity=2)
_add("min", "the smaller of x and y, NaN if either is NaN", _REALS, "minimum", arity=2)

# ---------------------------------------------------------------- elementary functions
for _name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan",
              "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"):  # fmt: skip
    _add(_name, f"{_name}(x), as in C; the principal value for complex numbers", _INEXACT)
_add("atan2", "the angle of the point (x, y), first argument y", _REAL_FLOATS, arity=2)
_add("floor", "the largest whole number not above x", _REAL_FLOATS)
_add("ceil", "the smallest whole number not below x", _REAL_FLOATS)
_add("trunc", "x without its fraction", _REAL_FLOATS)
_add(
    "rint",
    "the nearest whole number, the even one on a tie; both parts of complex numbers",
    _NUMBERS,
    "round",
)

# ---------------------------------------------------------------- comparison and choice
_add("lt", "x < y", _ORDERED, "less", arity=2, result="bool", symbol="<")
_add("le", "x <= y", _ORDERED, "less_equal", arity=2, result="bool", symbol="<=")
_add("gt", "x > y", _ORDERED, "greater", arity=2, result="bool", symbol=">")
_add("ge", "x >= y", _ORDERED, "greater_equal", arity=2, result="bool", symbol=">=")
_add("eq", "x == y", _ANY, "equal", arity=2, result="bool", symbol="==")
_add("ne", "x != y", _ANY, "not_equal", arity=2, result="bool", symbol="!=")
_add("isnan", "whether x is NaN", _REAL_FLOATS, result="bool")
_add("isinf", "whether x is infinite", _REAL_FLOATS, result="bool")
_add("isfinite", "whether x is neither infinite nor NaN", _REAL_FLOATS, result="bool")
_add("where", "x where the first argument is true, else y", _ANY, plain=frozenset(), arity=3)

# ---------------------------------------------------------------- bits
_add(
    "bitand", "x & y, of truth values too", dtypes.INTS | _BOOL, "bitwise_and", arity=2, symbol="&"
)
_add("bitor", "x | y, of truth values too", dtypes.INTS | _BOOL, "bitwise_or", arity=2, symbol="|")
_add(
    "bitxor", "x ^ y, of truth values too", dtypes.INTS | _BOOL, "bitwise_xor", arity=2, symbol="^"
)
_add("bitnot", "~x, of truth values too", dtypes.INTS | _BOOL, "bitwise_invert", symbol="~")
_add(
    "shl",
    "x shifted left by y, y clamped to 0 .. bits - 1",
    dtypes.INTS,
    _left_shift,
    arity=2,
    symbol="<<",
)
_add(
    "shr",
    "x shifted right by y, y clamped to 0 .. bits - 1, with the sign of signed types",
    dtypes.INTS,
    _right_shift,
    arity=2,
    symbol=">>",
)
_add("popcount", "the number of one bits", dtypes.INTS, _population_count, result="uint8")

# ---------------------------------------------------------------- complex numbers
_add("complex", "x + iy", frozenset(_COMPLEX_OF), _complex, arity=2, result="complex")
_add("real", "the real part", dtypes.COMPLEX, plain=frozenset(), result="real", views=True)
_add("imag", "the imaginary part", dtypes.COMPLEX, plain=frozenset(), result="real", views=True)
_add("conj", "the complex conjugate; x itself for real types", _NUMBERS, _conjugate, views=True)
_add("angle", "the argument, in (-pi, pi]", dtypes.COMPLEX, _angle, result="real")

# ---------------------------------------------------------------- special functions
for _name, _arity, _meaning in (
    ("erf", 1, "the error function"),
    ("erfc", 1, "1 - erf(x), accurate in the tail"),
    ("erfinv", 1, "the inverse of erf"),
    ("ndtri", 1, "the quantile function of the normal distribution"),
    ("lgamma", 1, "log |gamma(x)|"),
    ("digamma", 1, "the derivative of log gamma(x)"),
    ("i0e", 1, "exp(-|x|) times the modified Bessel function of order 0"),
    ("i1e", 1, "exp(-|x|) times the modified Bessel function of order 1"),
    ("igamma", 2, "the regularized lower incomplete gamma function P(a, x)"),
    ("igammac", 2, "the regularized upper incomplete gamma function Q(a, x)"),
    ("igamma_grad_a", 2, "the derivative of P(a, x) with respect to a"),
    ("zeta", 2, "the Hurwitz zeta function: the sum of (q + n) ** -x over n >= 0"),
    ("polygamma", 2, "the n-th derivative of digamma, first argument n"),
    ("betainc", 3, "the regularized incomplete beta function I_x(a, b)"),
):
    _add(_name, _meaning, _REAL_FLOATS, _special(_name), arity=_arity)
_add(
    "nextafter",
    "the next representable number after x towards y",
    _REAL_FLOATS,
    arity=2,
    needs=("nextafter",),
)
