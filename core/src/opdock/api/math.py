"""`tf.math`: mathematical functions of tensors."""

from __future__ import annotations

from opdock.ops.argmax import argmax, argmin
from opdock.ops.arithmetic import (
    add,
    floormod,
    maximum,
    minimum,
    mod,
    multiply,
    pow,
    squared_difference,
    subtract,
)  # fmt: skip
from opdock.ops.check import is_non_decreasing, is_strictly_increasing
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
from opdock.ops.complex import angle, conj, imag, real
from opdock.ops.composed.confusion import confusion_matrix
from opdock.ops.composed.division import (
    div_no_nan,
    divide,
    floordiv,
    multiply_no_nan,
    reciprocal_no_nan,
    truediv,
)  # fmt: skip
from opdock.ops.composed.moments import l2_normalize, zero_fraction
from opdock.ops.composed.reduce_stats import (
    count_nonzero,
    reduce_logsumexp,
    reduce_std,
    reduce_variance,
)  # fmt: skip
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
from opdock.ops.histogram import bincount
from opdock.ops.loss import in_top_k
from opdock.ops.nn import softplus, softsign
from opdock.ops.reduce import (
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)  # fmt: skip
from opdock.ops.scan import cumprod, cumsum, cumulative_logsumexp
from opdock.ops.segment import segment_max, segment_mean, segment_min, segment_prod, segment_sum
from opdock.ops.sets import invert_permutation
from opdock.ops.sorting import top_k
from opdock.ops.special import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erfc,
    erfinv,
    igamma,
    igammac,
    lbeta,
    lgamma,
    ndtri,
    nextafter,
    polygamma,
    zeta,
)  # fmt: skip
from opdock.ops.sums import accumulate_n, add_n, cross, polyval, scalar_mul, xdivy, xlogy
from opdock.ops.trig import acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan
from opdock.ops.unsorted_segment import (
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)  # fmt: skip
from opdock.ops.xent import log_softmax, softmax

divide_no_nan = div_no_nan

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "argmax", "argmin", "asin",
    "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e",
    "betainc", "bincount", "ceil", "confusion_matrix", "conj", "cos", "cosh", "count_nonzero",
    "cross", "cumprod", "cumsum", "cumulative_logsumexp", "digamma", "div_no_nan", "divide",
    "divide_no_nan", "equal", "erf", "erfc", "erfinv", "exp", "expm1", "floor", "floordiv",
    "floormod", "greater", "greater_equal", "igamma", "igammac", "imag", "in_top_k",
    "invert_permutation", "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal", "lgamma", "log",
    "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative",
    "nextafter", "not_equal", "polygamma", "polyval", "pow", "real", "reciprocal",
    "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax",
    "softplus", "softsign", "sqrt", "square", "squared_difference", "subtract", "tan", "tanh",
    "top_k", "truediv", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlogy",
    "zero_fraction", "zeta",
]  # fmt: skip
