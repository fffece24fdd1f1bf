"""Assertions on ranks, shapes and types: settled when the graph is built wherever possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import Assert, _all
from opdock.ops.control import no_op
from opdock.ops.registry import get

__all__ = [
    "assert_integer", "assert_proper_iterable", "assert_rank", "assert_rank_at_least",
    "assert_rank_in", "assert_same_float_dtype", "assert_scalar", "assert_type",
]  # fmt: skip


# ---------------------------------------------------------------- types
@extensible
def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """Checks, when the graph is built, that `tensor` has the type `tf_type`.

    Args:
        tensor: a tensor.
        tf_type: the element type.
        message: put in front of the text of the error.
        name: a name for the operation.

    Returns:
        An operation that does nothing.

    Raises:
        TypeError: it has another type.
    """
    wanted = dtypes.as_dtype(tf_type)
    with name_scope(name, "assert_type", [tensor]):
        if not isinstance(tensor, SparseTensor):
            tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype.base_dtype is not wanted.base_dtype:
            raise TypeError(f"{message or ''}  {_name(tensor)} must be of type {wanted}")
        return no_op("statically_determined_correct_type")


@extensible
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Checks, when the graph is built, that `x` holds integers.

    Args:
        x: a tensor.
        message: put in front of the text of the error.
        name: a name for the operation.

    Returns:
        An operation that does nothing.

    Raises:
        TypeError: it does not.
    """
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.base_dtype.is_integer:
            raise TypeError(
                f'{message or ""}  Expected "x" to be integer type.  '
                f"Found: {x.dtype.name} in {x.name}"
            )
        return no_op("statically_determined_was_integer")


@extensible
def assert_same_float_dtype(
    tensors: Iterable[Any] | None = None, dtype: Any = None
) -> dtypes.DType:
    """Checks, when the graph is built, that all tensors have one floating-point type.

    Args:
        tensors: tensors, values or what else has a `dtype`; None entries are passed over.
        dtype: the type that they must have.

    Returns:
        The type: float32 when nothing says otherwise.

    Raises:
        ValueError: the types differ, or are not floating-point.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        if tensor is None:
            continue
        if not hasattr(tensor, "dtype"):
            tensor = np.asarray(tensor)
        found = dtypes.as_dtype(tensor.dtype).base_dtype
        if wanted is None:
            wanted = found
        elif found is not wanted:
            name = getattr(tensor, "name", tensor)
            raise ValueError(f"{name}, type={found}, must be of the same type ({wanted}).")
    wanted = dtypes.float32 if wanted is None else wanted
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted.name}.")
    return wanted


@extensible
def assert_proper_iterable(values: Any) -> None:
    """Checks that `values` is an iterable other than a tensor, an array or a string.

    Raises:
        TypeError: it is not.
    """
    improper = (Tensor, SparseTensor, IndexedSlices, np.ndarray, str, bytes)
    if not isinstance(values, improper) and not hasattr(values, "__iter__"):
        raise TypeError(f"Expected argument 'values' to be iterable.  Found: {type(values)}")
    if isinstance(values, improper):
        raise TypeError(
            "Expected argument 'values' to be a 'proper' iterable.  Found: " + str(type(values))
        )


# ---------------------------------------------------------------- ranks
@extensible
def assert_rank(
    x: Any, rank: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x` has the given rank.

    Args:
        x: a tensor.
        rank: a scalar int.
        data: what to print in place of rank and shape.
        summarize: print so many elements of each tensor.
        message: put in front of the printed text.
        name: a name for the operation.

    Returns:
        An operation that checks what is not known yet.

    Raises:
        ValueError: the static rank is another.
    """
    with name_scope(name, "assert_rank", [x, rank]):
        return _rank_check(x, [rank], "Equal", "must have rank", data, summarize, message)


@extensible
def assert_rank_at_least(
    x: Any, rank: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that `x` has at least the given rank; see `assert_rank`.

    Args:
        x: a tensor.
        rank: a scalar int.
        data: what to print in place of rank and shape.
        summarize: print so many elements of each tensor.
        message: put in front of the text of the error.
        name: a name for the operation.
    """
    with name_scope(name, "assert_rank_at_least", [x, rank]):
        return _rank_check(
            x, [rank], "GreaterEqual", "must have rank at least", data, summarize, message
        )


@extensible
def assert_rank_in(
    x: Any, ranks: Sequence[Any], data: Any = None, summarize: Any = None,
    message: str | None = None, name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts that the rank of `x` is one of `ranks`; see `assert_rank`.

    Args:
        x: a tensor.
        ranks: scalar ints.
        data: what to print in place of rank and shape.
        summarize: print so many elements of each tensor.
        message: put in front of the text of the error.
        name: a name for the operation.
    """
    with name_scope(name, "assert_rank_in", [x, *ranks]):
        return _rank_check(x, list(ranks), "Equal", "must have rank in", data, summarize, message)


def _rank_check(
    x: Any, ranks: list[Any], op: str, text: str, data: Any, summarize: Any, message: str | None
) -> Operation:
    if not isinstance(x, SparseTensor):
        x = convert_to_tensor(x, name="x")
    wanted = [convert_to_tensor(r, name="rank") for r in ranks]
    known = [constant_value(r) for r in wanted]
    for tensor, value in zip(wanted, known, strict=True):
        if tensor.dtype.base_dtype is not dtypes.int32:
            raise TypeError(f"{message or ''}  {tensor.name} must be of type {dtypes.int32}")
        if tensor.raw_shape not in (None, ()) or (value is not None and value.ndim):
            raise ValueError("Rank must be a scalar.")
    static = shapes.as_shape(x.get_shape())
    numbers = [int(v) for v in known if v is not None]
    shown: Any = numbers if text.endswith("in") else numbers[0] if numbers else None
    if static is not None and len(numbers) == len(wanted):
        rank = len(static)
        holds = rank >= numbers[0] if op == "GreaterEqual" else rank in numbers
        if not holds:
            prefix = f"{message}. " if message else ""
            raise ValueError(
                f"{prefix}Tensor {_name(x)} {text} "
                f"{tuple(shown) if isinstance(shown, list) else shown}.  "
                f"Received rank {rank}, shape {shapes.TensorShape(static)}"
            )
        return no_op("static_checks_determined_all_ok")
    scalars = [_scalar_rank(r) for r in wanted if r.raw_shape is None]
    actual = get("Rank")(x) if not isinstance(x, SparseTensor) else get("Size")(x.dense_shape)
    tests = [get(op)(actual, get("Cast")(r, DstT=dtypes.int32)) for r in wanted]
    holds_now = tests[0]
    for test in tests[1:]:
        holds_now = get("LogicalOr")(holds_now, test)
    if data is None:
        size = get("Shape")(x) if not isinstance(x, SparseTensor) else x.dense_shape
        data = [message or "", f"Tensor {_name(x)} {text}", *wanted, "Received shape: ", size]
    with control_dependencies(scalars):
        return Assert(_all(holds_now), data, summarize=summarize)


def _scalar_rank(rank: Tensor) -> Operation:
    """Checks that a rank is a scalar, for a list of one rank is a common mistake."""
    is_scalar = get("Equal")(get("Rank")(rank), 0)
    return Assert(is_scalar, ["Rank must be a scalar. Received rank: ", rank])


@extensible
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """Checks, when the graph is built, that `tensor` is a scalar.

    Args:
        tensor: a tensor.
        name: a name for the operation.
        message: put in front of the text of the error.

    Returns:
        The tensor.

    Raises:
        ValueError: it is not, or its rank is unknown.
    """
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        converted = convert_to_tensor(tensor, name=scope + "tensor" if scope else "tensor")
        if converted.raw_shape != ():
            raise ValueError(
                f"{message or ''}Expected scalar shape for {converted.name}, saw shape: "
                f"{converted.shape}."
            )
        return converted


def _name(x: Any) -> str:
    return str(x.values.name if isinstance(x, SparseTensor) else x.name)
