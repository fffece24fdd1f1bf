"""Assertions on values: `tf.Assert` and `tf.assert_*`.

What is known when the graph is built is checked at once; the rest becomes an operation. Assertions
on ranks, shapes and types are in `check_static`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import dtypes, errors, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor, has_graph
from opdock.graph.nodes.scopes import executing_eagerly, name_scope
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.shapes import Shape

__all__ = [
    "Assert", "assert_equal", "assert_greater", "assert_greater_equal", "assert_less",
    "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative",
    "assert_non_positive", "assert_none_equal", "assert_positive", "is_non_decreasing",
    "is_numeric_tensor", "is_strictly_increasing",
]  # fmt: skip

assert_op = define_op(
    "Assert", "condition: bool, data: T", "T: list(type) >= 1, summarize: int = 3", stateful=True
).not_differentiable()


@assert_op.shape
def _assert_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return []


@extensible
def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails with InvalidArgumentError unless `condition` holds.

    Args:
        condition: a scalar bool tensor.
        data: tensors to put into the message.
        summarize: print so many elements of each, 3 by default.
        name: a name for the operation.

    Returns:
        The operation. It does nothing unless it runs: make the values that rely on it depend on
        it with `tf.control_dependencies`.
    """
    with name_scope(name, "Assert", [condition, *data]):
        # TensorFlow converts the data here and for the operation: its random operations that follow
        # have seeds by how many nodes there are.
        values = [convert_to_tensor(d) for d in data]
        given = values if executing_eagerly() else list(data)
        done: Operation = assert_op(condition, given, summarize=summarize)
        return done


# ---------------------------------------------------------------- pairs
_WORDS = {
    "x": "a tensor of numbers.",
    "y": "a tensor of the same type and a shape that broadcasts.",
    "rtol": "how much of `|y|` they may differ by; 10 roundings of the type by default.",
    "atol": "how much they may differ by beside that; 10 roundings of the type by default.",
    "data": "what to print in place of the tensors.",
    "summarize": "print so many elements of each tensor.",
    "message": "put in front of the printed text.",
    "name": "a name for the operation.",
    "returns": "An operation that raises InvalidArgumentError when it runs and the condition is"
    " false.",
    "raises": "InvalidArgumentError: the condition is known to be false already.",
}


@extensible
def assert_equal(
    x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x == y` holds for all elements, with broadcasting.

    Args:
        x: a tensor.
        y: a tensor of the same type and a shape that broadcasts.
        data: what to print in place of x and y.
        summarize: print so many elements of each tensor.
        message: put in front of the printed text.
        name: a name for the operation.

    Returns:
        An operation that raises InvalidArgumentError when it runs and the condition is false.

    Raises:
        tf.errors.InvalidArgumentError: the condition is known to be false already.
    """
    if x is y:
        return get("NoOp")(name=name or "assert_equal")  # type: ignore[no-any-return]
    return _pair("assert_equal", "==", "Equal", np.equal, x, y, data, summarize, message, name)


@extensible
@explained(_WORDS)
def assert_none_equal(
    x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x != y` holds for all elements."""
    return _pair(
        "assert_none_equal", "!=", "NotEqual", np.not_equal, x, y, data, summarize, message, name
    )


@extensible
@explained(_WORDS)
def assert_less(
    x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x < y` holds for all elements."""
    return _pair("assert_less", "<", "Less", np.less, x, y, data, summarize, message, name)


@extensible
@explained(_WORDS)
def assert_less_equal(
    x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x <= y` holds for all elements."""
    return _pair(
        "assert_less_equal", "<=", "LessEqual", np.less_equal, x, y, data, summarize, message, name
    )


@extensible
@explained(_WORDS)
def assert_greater(
    x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x > y` holds for all elements."""
    return _pair("assert_greater", ">", "Greater", np.greater, x, y, data, summarize, message, name)


@extensible
@explained(_WORDS)
def assert_greater_equal(
    x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x >= y` holds for all elements."""
    return _pair(
        "assert_greater_equal", ">=", "GreaterEqual", np.greater_equal, x, y, data, summarize,
        message, name,
    )  # fmt: skip


@extensible
@explained(_WORDS)
def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, data: Any = None, summarize: Any = None,
    message: str | None = None, name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `abs(x - y) <= atol + rtol * abs(y)` for all elements.

    The default tolerances are 10 times the machine epsilon of the type.
    """
    with name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype=x.dtype.base_dtype, name="y")
        epsilon = (
            np.finfo(x.dtype.base_dtype.np).eps if x.dtype.base_dtype.name != "bfloat16" else 2**-7
        )
        rtol = convert_to_tensor(10 * epsilon if rtol is None else rtol, x.dtype.base_dtype, "rtol")
        atol = convert_to_tensor(10 * epsilon if atol is None else atol, x.dtype.base_dtype, "atol")
        if data is None:
            data = [
                message or "", f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}",
                f"x ({x.name}) = ", x, f"y ({y.name}) = ", y,
            ]  # fmt: skip
        bound = get("AddV2")(atol, get("Mul")(rtol, get("Abs")(y)))
        holds = get("LessEqual")(get("Abs")(get("Sub")(x, y)), bound)
        return Assert(_all(holds), data, summarize=summarize)


def _pair(
    opname: str, symbol: str, op: str, check: Callable[..., Any], x: Any, y: Any, data: Any,
    summarize: Any, message: str | None, name: str | None,
) -> Operation:  # fmt: skip
    with name_scope(name, opname, [v for v in (x, y) if has_graph(v)]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype=x.dtype.base_dtype, name="y")
        holds = get(op)(x, y)
        known_x, known_y = constant_value(x), constant_value(y)
        known = None if known_x is None or known_y is None else check(known_x, known_y)
        if data is None and executing_eagerly():
            data = _differences(symbol, known_x, known_y, known, summarize)
        elif data is None:
            data = [
                f"Condition x {symbol} y did not hold element-wise:",
                f"x ({x.name}) = ", x, f"y ({y.name}) = ", y,
            ]  # fmt: skip
        if message is not None:
            data = [message, *data]
        if known is not None:
            _static(bool(np.all(known)), data)
        return Assert(_all(holds), data, summarize=summarize)


def _differences(symbol: str, x: Any, y: Any, holds: Any, summarize: int | None) -> list[Any]:
    """What an eager assertion tells: where a condition does not hold, and the first elements."""
    told: list[Any] = [f"Condition x {symbol} y did not hold."]
    most = 3 if summarize is None else summarize
    if most < 0:
        most = max(x.size, y.size)
    if not most:
        return told
    if x.shape == y.shape and x.shape:
        wrong = ~holds
        places = np.argwhere(wrong)[:most]
        told += [f"Indices of first {len(places)} different values:", places]
        told += ["Corresponding x values:", x[wrong][:most]]
        told += ["Corresponding y values:", y[wrong][:most]]
    for name, values in (("x", x), ("y", y)):
        first = values.reshape(-1)[:most]
        told += [f"First {first.size} elements of {name}:", first]
    return told


def _static(holds: bool, data: Sequence[Any]) -> None:
    """Raises now what would fail in every step."""
    if holds:
        return
    texts = []
    for item in data:
        value = constant_value(item) if isinstance(item, Tensor) else item
        texts.append(str(item if value is None else value))
    raise errors.InvalidArgumentError(None, None, "\n".join(texts))


def _all(holds: Tensor) -> Tensor:
    from opdock.ops.reduce import reduce_all

    return reduce_all(holds)


# ---------------------------------------------------------------- signs
@extensible
@explained(_WORDS)
def assert_negative(
    x: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x < 0` holds for all elements."""
    return _sign("assert_negative", "<", assert_less, x, data, summarize, message, name)


@extensible
@explained(_WORDS)
def assert_positive(
    x: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x > 0` holds for all elements."""
    return _sign("assert_positive", ">", assert_less, x, data, summarize, message, name)


@extensible
@explained(_WORDS)
def assert_non_negative(
    x: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x >= 0` holds for all elements."""
    return _sign("assert_non_negative", ">=", assert_less_equal, x, data, summarize, message, name)


@extensible
@explained(_WORDS)
def assert_non_positive(
    x: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x <= 0` holds for all elements."""
    return _sign("assert_non_positive", "<=", assert_less_equal, x, data, summarize, message, name)


def _sign(
    opname: str, symbol: str, check: Callable[..., Operation], x: Any, data: Any, summarize: Any,
    message: str | None, name: str | None,
) -> Operation:  # fmt: skip
    with name_scope(name, opname, [x]):
        x = convert_to_tensor(x, name="x")
        if data is None:
            prefix = message or ""
            data = [
                prefix,
                f"Condition x {symbol} 0 did not hold element-wise:",
                f"x ({x.name}) = ",
                x,
            ]
        zero = convert_to_tensor(0, x.dtype.base_dtype)
        pair = (zero, x) if symbol[0] == ">" else (x, zero)
        return check(*pair, data=data, summarize=summarize)


# ---------------------------------------------------------------- sequences
@extensible
def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element of `x`, in row-major order, is at least the one before.

    Args:
        x: a numeric tensor.
        name: a name for the operations, "is_non_decreasing" by default.

    Returns:
        A scalar bool tensor; true for fewer than two elements.

    Raises:
        TypeError: `x` is not numeric.
    """
    return _ordered(x, name, "is_non_decreasing", "LessEqual")


@extensible
def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether each element of `x`, in row-major order, is greater than the one before.

    Args:
        x: a numeric tensor.
        name: a name for the operations, "is_strictly_increasing" by default.

    Returns:
        A scalar bool tensor; true for fewer than two elements.

    Raises:
        TypeError: `x` is not numeric.
    """
    return _ordered(x, name, "is_strictly_increasing", "Less")


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether `tensor` is a tensor of numbers (integers or real floats)."""
    return (
        has_graph(tensor) and hasattr(tensor, "dtype") and tensor.dtype.base_dtype in dtypes.REALS
    )


def _ordered(x: Any, name: str | None, default: str, op: str) -> Tensor:
    with name_scope(name, default, [x]):
        x = convert_to_tensor(x)
        if not is_numeric_tensor(x):
            raise TypeError(f"Expected x to be numeric, instead found: {x}")
        flat = get("Reshape")(x, [-1])
        # Slices of fewer than two elements are empty, and all of nothing holds.
        before = get("StridedSlice")(flat, [0], [-1], [1], begin_mask=1)
        after = get("StridedSlice")(flat, [1], [0], [1], end_mask=1)
        return _all(get(op)(before, after))
