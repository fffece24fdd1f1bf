"""What distributions share: parameters in two forms, checks, further seeds, special functions."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops import special
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.check import (
    assert_equal,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_non_negative,
)
from opdock.ops.compare import logical_and
from opdock.ops.composed.check_static import assert_rank_at_least
from opdock.ops.control import no_op, with_dependencies
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import exp, log, log1p, sigmoid, square
from opdock.ops.fill import ones, ones_like, zeros_like
from opdock.ops.reduce import reduce_all, reduce_sum
from opdock.ops.select import where_v2
from opdock.ops.special import erf, erfc, lgamma
from opdock.ops.xent import softmax

__all__ = [
    "assert_integer_form", "embed_check_categorical_event_shape",
    "embed_check_integer_casting_closed", "embed_check_nonnegative_integer_form", "erfinv",
    "gen_new_seed",
    "get_logits_and_probs", "log_cdf_laplace", "log_combinations", "log_ndtr", "ndtr", "ndtri",
    "where_above_one",
]  # fmt: skip


def gen_new_seed(seed: Any, salt: str) -> int | None:
    """Another seed for another op of the same sample, so that the two are independent."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


def get_logits_and_probs(
    logits: Any = None, probs: Any = None, multidimensional: bool = False,
    validate_args: bool = False, name: str = "get_logits_and_probs", dtype: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Probabilities as logits and as themselves, from either.

    Args:
        logits: log-odds, or unnormalized log-probabilities.
        probs: probabilities.
        multidimensional: whether the last dimension is that of the events.
        validate_args: whether to check the probabilities when the graph runs.
        name: a name for the operations.
        dtype: the type to convert to.

    Raises:
        ValueError: both are given, or neither.
        TypeError: they are no floats.
    """
    with name_scope(name, values=[probs, logits]):
        if (probs is None) == (logits is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            logits = convert_to_tensor(logits, name="logits", dtype=dtype)
            if not logits.dtype.is_floating:
                raise TypeError("logits must having floating type.")
            if multidimensional and validate_args:
                logits = embed_check_categorical_event_shape(logits)
            return logits, (softmax if multidimensional else sigmoid)(logits, name="probs")
        probs = convert_to_tensor(probs, name="probs", dtype=dtype)
        if not probs.dtype.is_floating:
            raise TypeError("probs must having floating type.")
        if validate_args:
            probs = _checked_probs(probs, multidimensional)
        with name_scope("logits"):
            logits = log(probs)
            return (logits if multidimensional else logits - log1p(-1.0 * probs)), probs


def _checked_probs(probs: Any, multidimensional: bool) -> Any:
    with name_scope("validate_probs"):
        one = constant(1.0, probs.dtype)
        checks = [assert_non_negative(probs)]
        if multidimensional:
            probs = embed_check_categorical_event_shape(probs)
            total = reduce_sum(probs, -1)
            checks.append(assert_near(total, one, message="probs does not sum to 1."))
        else:
            message = "probs has components greater than 1."
            checks.append(assert_less_equal(probs, one, message=message))
        return with_dependencies(checks, probs)


def log_combinations(n: Any, counts: Any, name: str = "log_combinations") -> Any:
    """The logarithm of the multinomial coefficient: in how many orders `n` draws give `counts`."""
    with name_scope(name, values=[n, counts]):
        n = convert_to_tensor(n, name="n")
        counts = convert_to_tensor(counts, name="counts")
        return lgamma(n + 1) - reduce_sum(lgamma(counts + 1), axis=[-1])


def where_above_one(
    value: Any, parameters: Sequence[tuple[Any, str]], allow_nan: bool, per_event: bool = False
) -> Any:
    """`value` where parameters are above one: what is not defined elsewhere.

    Args:
        value: a statistic.
        parameters: tensors that must be above one, with what to say where they are not.
        allow_nan: whether the statistic is NaN elsewhere; the step fails if not.
        per_event: whether all entries of the last dimension count together.
    """
    if allow_nan:
        defined = functools.reduce(logical_and, [tensor > 1.0 for tensor, _ in parameters])
        if per_event:
            defined = reduce_all(defined, -1, keepdims=True)
        return where_v2(defined, value, constant(math.nan, dtype=value.dtype))
    one = ones([], dtype=value.dtype)
    return with_dependencies([assert_less(one, p, message=m) for p, m in parameters], value)


# ---------------------------------------------------------------- checks
def assert_integer_form(
    x: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
    int_dtype: Any = None, name: str = "assert_integer_form",
) -> Any:  # fmt: skip
    """An op that fails unless all of `x` are whole numbers.

    Raises:
        TypeError: there is no type of integers for that of `x`.
    """
    with name_scope(name, values=[x, data]):
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_integer:
            return no_op()
        wide = {dtypes.float16: dtypes.int16, dtypes.float32: dtypes.int32,
                dtypes.float64: dtypes.int64}  # fmt: skip
        int_dtype = int_dtype or wide.get(x.dtype.base_dtype)
        if int_dtype is None:
            raise TypeError(f"Unrecognized type {x.dtype.name}")
        message = message or f"{x} has non-integer components"
        whole = cast(cast(x, int_dtype), x.dtype)
        return assert_equal(x, whole, data=data, summarize=summarize, message=message, name=name)


def embed_check_nonnegative_integer_form(
    x: Any, name: str = "embed_check_nonnegative_integer_form"
) -> Any:
    """`x`, or an error when the graph runs unless all of it are whole numbers of at least 0."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        checks = [assert_non_negative(x, message=f"'{x}' must be non-negative.")]
        if not x.dtype.is_integer:
            message = f"'{x}' cannot contain fractional components."
            checks.append(assert_integer_form(x, message=message))
        return with_dependencies(checks, x)


_TOO_FLAT = "A categorical-distribution parameter must have at least 1 dimension."
_TOO_FEW = "A categorical-distribution parameter must have at least 2 events."


def embed_check_categorical_event_shape(
    categorical_param: Any, name: str = "embed_check_categorical_event_shape"
) -> Any:
    """The parameter, or an error unless its last dimension can be that of a choice.

    Raises:
        ValueError: there is no such dimension, it is below 2, or above what the type can count.
        TypeError: the type counts nothing.
    """
    with name_scope(name, values=[categorical_param]):
        x = convert_to_tensor(categorical_param, name="categorical_param")
        dtype = x.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"Unable to validate size of unrecognized dtype ({dtype.name}).")
        most = _largest_integer(dtype)
        if x.shape.ndims == 0:
            raise ValueError(_TOO_FLAT)
        events = None if x.shape.ndims is None else x.shape.as_list()[-1]
        if events is not None:
            if events < 2:
                raise ValueError(_TOO_FEW)
            if events > most:
                raise ValueError(
                    f"Number of classes exceeds `dtype` precision, i.e., {dtype.name} implies "
                    f"shape ({events}) cannot exceed {most}."
                )
            return x
        count = shape(x, name="x_shape")[-1]
        message = (
            f"Number of classes exceeds `dtype` precision, i.e., {dtype.name} dtype cannot exceed "
            f"{most} shape."
        )
        checks = [
            assert_rank_at_least(x, 1, message=_TOO_FLAT),
            assert_greater_equal(count, 2, message=_TOO_FEW),
            assert_less_equal(count, min(most, dtypes.int32.max), message=message),
        ]
        return with_dependencies(checks, x)


def embed_check_integer_casting_closed(
    x: Any, target_dtype: Any, assert_nonnegative: bool = True,
    name: str = "embed_check_casting_closed",
) -> Any:  # fmt: skip
    """`x`, or an error when the graph runs unless a cast to `target_dtype` keeps all values.

    Raises:
        TypeError: neither type is one of integers, or one of them is of no numbers.
    """
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        if not _counts(x.dtype) and not x.dtype.is_floating:
            raise TypeError(f"{x.dtype.name}.dtype must be floating- or integer-type.")
        if not _counts(target_dtype) and not target_dtype.is_floating:
            raise TypeError(
                f"target_dtype ({target_dtype.name}) must be floating- or integer-type."
            )
        if not _counts(x.dtype) and not _counts(target_dtype):
            raise TypeError(
                f"At least one of {x}.dtype ({x.dtype.name}) and target_dtype "
                f"({target_dtype.name}) must be integer-type."
            )
        checks = []
        if assert_nonnegative:
            checks.append(assert_non_negative(x, message="Elements must be non-negative."))
        if x.dtype.is_floating:
            message = f"Elements must be {target_dtype.name}-equivalent."
            checks.append(assert_integer_form(x, int_dtype=target_dtype, message=message))
        else:
            checks += _range_checks(x, target_dtype, assert_nonnegative)
        return with_dependencies(checks, x) if checks else x


def _range_checks(x: Any, target: Any, nonnegative: bool) -> list[Any]:
    checks = []
    most, least = _largest_integer(target), _smallest_integer(target)
    if _largest_integer(x.dtype) > most:
        message = f"Elements cannot exceed {most}."
        checks.append(assert_less_equal(x, most, message=message))
    if not nonnegative and _smallest_integer(x.dtype) < least:
        message = f"Elements cannot be smaller than {least}."
        checks.append(assert_greater_equal(x, least, message=message))
    return checks


def _counts(dtype: Any) -> bool:
    """Whether the values of a type are whole numbers; bool has two of them."""
    return bool(dtype.is_integer or dtype.base_dtype == dtypes.bool)


def _largest_integer(dtype: Any) -> int:
    """The largest number up to which a type has every whole number."""
    if dtype.is_floating:
        return 1 << (int(np.finfo(dtype.as_numpy_dtype).nmant) + 1)
    return 1 if dtype.base_dtype == dtypes.bool else int(np.iinfo(dtype.as_numpy_dtype).max)


def _smallest_integer(dtype: Any) -> int:
    """The least whole number, such that a type has its opposite as well."""
    return 0 if dtype.base_dtype == dtypes.bool or dtype.is_unsigned else -_largest_integer(dtype)


# ---------------------------------------------------------------- special functions
def _only_wide_floats(x: Any) -> None:
    if x.dtype.base_dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"x.dtype={x.dtype} is not handled, see docstring for supported types.")


def ndtr(x: Any, name: str = "ndtr") -> Any:
    """The standard normal distribution function, elementwise, for float32 and float64.

    Raises:
        TypeError: another type.
    """
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        _only_wide_floats(x)
        return _ndtr(x)


def _ndtr(x: Any) -> Any:
    # erf near 0, erfc in the tails: each is exact where the other cancels.
    half = constant(math.sqrt(0.5), dtype=x.dtype, name="half_sqrt_2")
    w = x * half
    z = absolute(w)
    tails = where_v2(w > 0.0, 2.0 - erfc(z), erfc(z))
    return 0.5 * where_v2(z < half, 1.0 + erf(w), tails)


def ndtri(p: Any, name: str = "ndtri") -> Any:
    """The standard normal quantile, elementwise; at 0 and 1 it is infinite and its gradient is not.

    Raises:
        TypeError: `p` is neither of float32 nor of float64.
    """
    with name_scope(name, values=[p]):
        p = convert_to_tensor(p, name="p")
        _only_wide_floats(p)
        inside = logical_and(p > 0.0, p < 1.0)
        ends = where_v2(p <= 0.0, constant(-math.inf, p.dtype), constant(math.inf, p.dtype))
        return where_v2(inside, special.ndtri(where_v2(inside, p, 0.5 * ones_like(p))), ends)


# Below the first the series of the lower tail takes over, above the second the upper tail's.
LOGNDTR_FLOAT64_LOWER = np.array(-20, np.float64)
LOGNDTR_FLOAT64_UPPER = np.array(8, np.float64)
LOGNDTR_FLOAT32_LOWER = np.array(-10, np.float32)
LOGNDTR_FLOAT32_UPPER = np.array(5, np.float32)


def erfinv(x: Any, name: str = "erfinv") -> Any:
    """The inverse of the error function, elementwise.

    Args:
        x: a tensor of float32 or float64 in (-1, 1).
        name: a name for the operation.

    Raises:
        TypeError: another type.
    """
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        if x.dtype.as_numpy_dtype not in (np.float32, np.float64):
            raise TypeError(f"x.dtype={x.dtype} is not handled, see docstring for supported types.")
        return ndtri((x + 1.0) / 2.0) / math.sqrt(2.0)


def log_ndtr(x: Any, series_order: int = 3, name: str = "log_ndtr") -> Any:
    """The logarithm of the standard normal distribution function, far into both tails.

    Args:
        x: a tensor of float32 or float64.
        series_order: how many terms the asymptotic series of the lower tail has, at most 30.
        name: a name for the operation.

    Raises:
        TypeError: another type, or an order that is no integer.
        ValueError: an order out of range.
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        if x.dtype.base_dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(f"x.dtype={x.dtype} is not supported.")
        lower, upper = (
            (LOGNDTR_FLOAT64_LOWER, LOGNDTR_FLOAT64_UPPER)
            if x.dtype.base_dtype == dtypes.float64
            else (LOGNDTR_FLOAT32_LOWER, LOGNDTR_FLOAT32_UPPER)
        )
        # Each branch sees only what it is for, so that no gradient is NaN.
        middle = log(_ndtr(maximum(x, lower)))
        below = _log_ndtr_lower(minimum(x, lower), series_order)
        return where_v2(x > upper, -_ndtr(-x), where_v2(x > lower, middle, below))


def _log_ndtr_lower(x: Any, order: int) -> Any:
    """The asymptotic series of the lower tail, its odd and its even terms added apart."""
    squared = square(x)
    log_scale = -0.5 * squared - log(-x) - 0.5 * math.log(2.0 * math.pi)
    sums = {0: zeros_like(x), 1: zeros_like(x)}
    power = squared
    factorial = 1.0
    for n in range(1, order + 1):
        factorial *= 2 * n - 1
        sums[n % 2] += factorial / power
        power *= squared
    return log_scale + log(ones_like(x) + sums[0] - sums[1])


def log_cdf_laplace(x: Any, name: str = "log_cdf_laplace") -> Any:
    """The logarithm of the standard Laplace distribution function, elementwise."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        upper = log1p(-0.5 * exp(-absolute(x)))
        return where_v2(x < 0.0, x - math.log(2.0), upper)
