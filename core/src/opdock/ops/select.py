"""Selection by condition: where, boolean masks and one-hot encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import reshape, shape, squeeze
from opdock.ops.gather import gather
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["boolean_mask", "one_hot", "where", "where_v2"]


# ---------------------------------------------------------------- Where, where
where_op = define_op(
    "Where", "input: T -> index: int64", "T: {numbertype, bool} = DT_BOOL"
).not_differentiable()


@where_op.shape
def _where_shape(sig: ShapeSig) -> Shape:
    source = sig.shapes[0]
    return (None, None if source is None else len(source))


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


# ---------------------------------------------------------------- boolean_mask
def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """The elements of a tensor where a mask is true.

    Args:
        tensor: a tensor.
        mask: a bool tensor whose shape is that of `tensor` from dimension `axis` on; its rank must
            be known.
        name: a name for the operation.
        axis: the first masked dimension, 0 by default.

    Returns:
        A tensor in which one dimension replaces the masked ones.

    Raises:
        ValueError: the shapes do not fit, or the rank of the mask is unknown or 0.
    """
    from opdock.ops.joining import concat
    from opdock.ops.reduce import reduce_prod

    with name_scope(name, None, [tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        known, mask_shape = tensor.raw_shape, mask.raw_shape
        if mask_shape is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None. "
                "E.g. shape=[None] is ok, but shape=None is not."
            )
        n = len(mask_shape)
        if n == 0:
            raise ValueError("mask cannot be scalar.")
        at: Any = 0 if axis is None else axis
        if isinstance(at, Tensor):
            value = constant_value(at)
            at = at if value is None else int(value)
        if isinstance(at, Tensor):
            full = shape(tensor)
            leading = reduce_prod(full[at : at + n], [0])
            flat = reshape(tensor, concat([full[:at], [leading], full[at + n :]], 0))
            return _masked(flat, reshape(mask, [-1]), at)
        if at < 0 and known is not None:
            at += len(known)
        covered = array_util.subshape(known, at, at + n)
        if not shapes.is_compatible(covered, mask_shape):
            raise ValueError(
                f"Shapes {shapes.text(covered)} and {shapes.text(mask_shape)} are incompatible"
            )
        if n > 1:
            full = shape(tensor)
            leading = reduce_prod(full[at : at + n], [0])
            tensor = reshape(tensor, concat([full[:at], [leading], full[at + n :]], 0))
            if known is not None:
                tensor.set_shape((*known[:at], shapes.num_elements(covered), *known[at + n :]))
            mask = reshape(mask, [-1])
        return _masked(tensor, mask, at)


def _masked(tensor: Tensor, mask: Tensor, axis: Any) -> Tensor:
    return gather(tensor, squeeze(where_v2(mask), axis=[1]), axis=axis)


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
    return None if value is None else convert_to_tensor(value, dtype_hint=wanted, name=name)
