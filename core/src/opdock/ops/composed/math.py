"""The mathematical families under one name, for modules that use a bit of each."""

from __future__ import annotations

from opdock.ops.arithmetic import (
    add,
    floor_div,
    floormod,
    maximum,
    minimum,
    mod,
    multiply,
    pow,
    realdiv,
    squared_difference,
    subtract,
    truncatediv,
    truncatemod,
)  # fmt: skip
from opdock.ops.compare import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)  # fmt: skip
from opdock.ops.complex import angle, complex, conj, imag, real
from opdock.ops.composed.division import div, div_no_nan, divide, floordiv, truediv
from opdock.ops.elementary import (
    abs,
    ceil,
    exp,
    expm1,
    floor,
    is_finite,
    is_inf,
    is_nan,
    log,
    log1p,
    log_sigmoid,
    negative,
    reciprocal,
    rint,
    round,
    rsqrt,
    sigmoid,
    sign,
    sqrt,
    square,
    tanh,
)  # fmt: skip
from opdock.ops.special import (
    betainc,
    digamma,
    erf,
    erfc,
    igamma,
    igammac,
    lbeta,
    lgamma,
    polygamma,
    zeta,
)  # fmt: skip
from opdock.ops.sums import accumulate_n, add_n, cross, scalar_mul
from opdock.ops.trig import acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "asin", "asinh", "atan",
    "atan2", "atanh", "betainc", "ceil", "complex", "conj", "cos", "cosh", "cross", "digamma",
    "div", "div_no_nan", "divide", "equal", "erf", "erfc", "exp", "expm1", "floor", "floor_div",
    "floordiv", "floormod", "greater", "greater_equal", "igamma", "igammac", "imag", "is_finite",
    "is_inf", "is_nan", "lbeta", "less", "less_equal", "lgamma", "log", "log1p", "log_sigmoid",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod",
    "multiply", "negative", "not_equal", "polygamma", "pow", "real", "realdiv", "reciprocal",
    "rint", "round", "rsqrt", "scalar_mul", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "squared_difference", "subtract", "tan", "tanh", "truediv", "truncatediv", "truncatemod",
    "zeta",
]  # fmt: skip
