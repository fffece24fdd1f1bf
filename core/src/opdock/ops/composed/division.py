"""Division and the other functions that choose an op by their arguments' types."""

from __future__ import annotations

from typing import Any, Final

from opdock import dtypes
from opdock.docstrings import ELEMENTWISE, PAIRWISE, explained
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import div_no_nan_op, floor_div_op, mul_no_nan_op, real_div_op
from opdock.ops.cast import cast

__all__ = ["div", "div_no_nan", "divide", "floordiv", "truediv"]

# The type in which integers are divided; None divides as they are.
_TRUEDIV: Final[dict[DType, DType | None]] = {
    dtypes.uint8: dtypes.float32, dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32, dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64, dtypes.int64: dtypes.float64,
    **dict.fromkeys(dtypes.FLOATS | dtypes.COMPLEX),
}  # fmt: skip


def _check_same(x: Tensor, y: Tensor) -> None:
    if x.dtype.base_dtype is not y.dtype.base_dtype:
        raise TypeError(
            f"x and y must have the same dtype, got {x.dtype.base_dtype!r} != "
            f"{y.dtype.base_dtype!r}"
        )


def as_quotient(x: Tensor) -> Tensor:
    """`x` in the type in which Python 3 divides it; TypeError if it is no number."""
    kind = x.dtype.base_dtype
    if kind not in _TRUEDIV:
        raise TypeError(f"Invalid dtype {kind!r} in __truediv__.")
    wide = _TRUEDIV[kind]
    return x if wide is None else cast(x, wide)


_WORDS = {
    "x": "a tensor of numbers.",
    "y": "a tensor of the same type.",
    "name": "a name for the operation.",
    "raises": "TypeError: the types differ.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    returns="A tensor in the broadcast shape: float32 for integers of up to 16 bits, float64 for"
    " int32 and int64, else the type of `x`.",
    raises="TypeError: the types differ, or are not numbers.",
)
def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` as Python 3 divides: integers become floats first."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", preferred_dtype=x.dtype.base_dtype)
        _check_same(x, y)
        x, y = as_quotient(x), as_quotient(y)
        return real_div_op(x, y, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` as Python 2 divides: floats exactly, integers by `tf.floordiv`."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        _check_same(x, y)
        exact = x.dtype.is_floating or x.dtype.is_complex
        return (real_div_op if exact else floor_div_op)(x, y, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    x="a tensor of real numbers.",
    raises="TypeError: the types differ.\n"
    "tf.errors.InvalidArgumentError: an integer is divided by zero.",
)
def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`floor(x / y)`, elementwise, with broadcasting."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return floor_div_op(x, y, name=scope)  # type: ignore[no-any-return]


class _Named:
    """A dividend that carries the name for its quotient."""

    def __init__(self, x: Any, name: str) -> None:
        self._x, self._name = x, name

    def __truediv__(self, y: Any) -> Tensor:
        return truediv(self._x, y, self._name)


@extensible
@explained(PAIRWISE)
def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y` by Python 3's operator; plain numbers give a plain number."""
    return x / y if name is None else _Named(x, name) / y


@extensible
@explained(_WORDS, x="a tensor of floats or complex numbers.")
def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y`, but 0 where `y` is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        _check_same(x, y)
        return div_no_nan_op(x, y, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x * y`, but 0 where `y` is 0 even if `x` is infinite or NaN; types as `tf.div_no_nan`."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        _check_same(x, y)
        return mul_no_nan_op(x, y, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """`1 / x`, but 0 where `x` is 0, elementwise, for floats and complex numbers."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        one = constant(1, dtype=x.dtype.base_dtype, name="one")
        return div_no_nan_op(one, x, name=scope)  # type: ignore[no-any-return]
