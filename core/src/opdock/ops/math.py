"""All of the mathematical families under one name, for modules that use a bit of each."""

from __future__ import annotations

from opdock.ops.arithmetic import (
    add, floor_div, floormod, maximum, minimum, mod, multiply, pow, realdiv, squared_difference,
    subtract, truncatediv, truncatemod,
)  # fmt: skip
from opdock.ops.compare import (
    equal, greater, greater_equal, less, less_equal, logical_and, logical_not, logical_or,
    logical_xor, not_equal,
)  # fmt: skip
from opdock.ops.complex import angle, complex, conj, imag, real
from opdock.ops.division import (
    div, div_no_nan, divide, floordiv, multiply_no_nan, reciprocal_no_nan, truediv,
)  # fmt: skip
from opdock.ops.elementary import (
    abs, ceil, exp, expm1, floor, is_finite, is_inf, is_nan, log, log1p, log_sigmoid, negative,
    reciprocal, rint, round, rsqrt, sigmoid, sign, sqrt, square, tanh,
)  # fmt: skip
from opdock.ops.special import (
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, betainc, digamma, erf, erfc, erfinv, igamma,
    igammac, lbeta, lgamma, ndtri, nextafter, polygamma, zeta,
)  # fmt: skip
from opdock.ops.sums import accumulate_n, add_n, cross, polyval, scalar_mul, xdivy, xlogy
from opdock.ops.trig import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan,
)  # fmt: skip
from opdock.ops.unbroadcast import broadcast_gradient_args_op

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "asin", "asinh", "atan",
    "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc",
    "broadcast_gradient_args_op", "ceil", "complex", "conj", "cos", "cosh", "cross", "digamma",
    "div", "div_no_nan", "divide", "equal", "erf", "erfc", "erfinv", "exp", "expm1", "floor",
    "floor_div", "floordiv", "floormod", "greater", "greater_equal", "igamma", "igammac", "imag",
    "is_finite", "is_inf", "is_nan", "lbeta", "less", "less_equal", "lgamma", "log", "log1p",
    "log_sigmoid", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum",
    "mod", "multiply", "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal",
    "polygamma", "polyval", "pow", "real", "realdiv", "reciprocal", "reciprocal_no_nan", "rint",
    "round", "rsqrt", "scalar_mul", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "squared_difference", "subtract", "tan", "tanh", "truediv", "truncatediv", "truncatemod",
    "xdivy", "xlogy", "zeta",
]  # fmt: skip
