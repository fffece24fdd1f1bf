"""Selection by condition: where, boolean masks and one-hot encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["one_hot", "where", "where_v2"]


# ---------------------------------------------------------------- Where, where
where_op = define_op(
    "Where", "input: T -> index: int64", "T: {numbertype, bool} = DT_BOOL"
).not_differentiable()


@where_op.shape
def _where_shape(sig: ShapeSig) -> Shape:
    source = sig.shapes[0]
    return (None, None if source is None else len(source))


@extensible
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """The coordinates of the true elements, or a choice between two tensors.

    Args:
        condition: a bool tensor.
        x: values where `condition` is true.
        y: values where it is false, of the type and shape of `x`. A vector `condition` chooses
            whole rows of `x` and `y`.
        name: a name for the operation.

    Returns:
        Without `x` and `y` an int64 tensor of shape [number of true elements, rank]; with them a
        tensor of the shape of `x`.

    Raises:
        ValueError: only one of `x` and `y` is given, or the shapes do not fit.
    """
    return _where(condition, x, y, name, "Select")


@extensible
def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`where`, with `condition`, `x` and `y` broadcast against each other.

    Args:
        condition: a bool tensor.
        x: values where `condition` is true.
        y: values where it is false, of the type of `x`.
        name: a name for the operation.

    Returns:
        Without `x` and `y` an int64 tensor of shape [number of true elements, rank]; with them a
        tensor of the broadcast shape.

    Raises:
        ValueError: only one of `x` and `y` is given, or the shapes do not broadcast.
    """
    return _where(condition, x, y, name, "SelectV2")


def _where(condition: Any, x: Any, y: Any, name: str | None, choice: str) -> Tensor:
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, preferred_dtype=dtypes.bool, name="condition")
            return where_op(condition, name=scope)  # type: ignore[no-any-return]
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return get(choice)(condition, x, y, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- OneHot
one_hot_op = define_op(
    "OneHot", "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
    "axis: int = -1, T: type, TI: {uint8, int32, int64} = DT_INT64",
).not_differentiable()  # fmt: skip


@one_hot_op.shape
def _one_hot_shape(sig: ShapeSig) -> Shape:
    indices, axis = sig.shapes[0], sig.attrs["axis"]
    if axis < -1:
        raise ValueError(f"axis must be >= -1 but is {axis}")
    array_util.scalar_shape(sig, 1)
    depths = array_util.const_ints(sig, 1)
    depth = None if depths is None else depths[0]
    if depth is not None and depth < 0:
        raise ValueError(
            f"Dimension size, given by scalar input 1, must be non-negative but is {depth}"
        )
    if indices is None:
        return None
    if axis > len(indices):
        raise ValueError(f"axis must be in [-1, {len(indices)}] but is {axis}")
    at = len(indices) if axis == -1 else axis
    return indices[:at] + (depth,) + indices[at:]


@one_hot_op.rows
def _one_hot_rows(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """The new dimension stands behind that of the rows."""
    if any(rowed[1:]):
        return None
    axis = op.attrs["axis"]
    return [one_hot_op(*inputs, axis=axis if axis < 0 else axis + 1)]


@extensible
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """One-hot vectors for indices; an index outside [0, depth) gives a vector of `off_value`.

    Args:
        indices: a uint8, int32 or int64 tensor.
        depth: the length of the vectors, a scalar int32.
        on_value: the value at the index, 1 by default.
        off_value: the value elsewhere, 0 by default.
        axis: the dimension along which the vectors lie, the last by default.
        dtype: the type of the result; that of the values, or float32.
        name: a name for the operation.

    Returns:
        A tensor of one dimension more than `indices`.

    Raises:
        TypeError: the types of `on_value`, `off_value` and `dtype` differ.
        ValueError: `depth` is not a scalar.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        on = _hot_value(on_value, wanted, "on_value")
        off = _hot_value(off_value, wanted, "off_value")
        for value, what in ((on, "on_value"), (off, "off_value")):
            if value is not None and wanted is not None and value.dtype.base_dtype is not wanted:
                raise TypeError(
                    f"dtype {value.dtype.base_dtype} of {what} does not match dtype parameter "
                    f"{wanted}"
                )
        element = wanted or next(
            (v.dtype.base_dtype for v in (on, off) if v is not None), dtypes.float32
        )
        if on is None:
            on = convert_to_tensor(np.ones((), element.np), element, "on_value")
        if off is None:
            off = convert_to_tensor(np.zeros((), element.np), element, "off_value")
        if on.dtype.base_dtype is not off.dtype.base_dtype:
            raise TypeError(
                f"dtype {on.dtype.base_dtype} of on_value does not match dtype "
                f"{off.dtype.base_dtype} of off_value"
            )
        return one_hot_op(indices, depth, on, off, axis=axis, name=scope)  # type: ignore[no-any-return]


def _hot_value(value: Any, wanted: Any, name: str) -> Tensor | None:
    # A plain number is of any type; an array has one.
    hint = wanted if isinstance(value, (bool, int, float, complex)) else None
    return None if value is None else convert_to_tensor(value, dtype_hint=hint, name=name)
