"""`tf.tensordot`: contraction over given axes, as one matrix product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import rank, reshape, shape
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_prod
from opdock.ops.select import where
from opdock.ops.sets import setdiff1d

__all__ = ["tensordot"]

_INTEGERS = (int, np.integer)


@extensible
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Multiplies two tensors and sums over pairs of their axes.

    Args:
        a: a numeric tensor.
        b: a tensor of the type of `a`.
        axes: an integer n, which pairs the last n axes of `a` with the first n of `b`; or two lists
            (or a tensor of shape [2, n]) that name the axes of `a` and of `b`.
        name: a name for the operation.

    Returns:
        A tensor of the type of `a`: the free axes of `a`, then those of `b`.

    Raises:
        ValueError: `axes` is malformed, or paired dimensions differ.
        IndexError: an axis is not one of its tensor's.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        axes_a, axes_b = _axes(a, axes)
        matrix_a, free_a, static_a = _as_matrix(a, axes_a, axes_first=False)
        matrix_b, free_b, static_b = _as_matrix(b, axes_b, axes_first=True)
        product = matmul(matrix_a, matrix_b)
        if isinstance(free_a, list) and isinstance(free_b, list):
            return reshape(product, free_a + free_b, name=scope)
        free = [convert_to_tensor(f, dtypes.int32) for f in (free_a, free_b)]
        out = reshape(product, concat(free, 0), name=scope)
        if static_a is not None and static_b is not None:
            out.set_shape(static_a + static_b)
        return out


def _axes(a: Tensor, axes: Any) -> tuple[Any, Any]:
    """The axes of `a` and of `b` to contract: lists where known, else tensors."""
    if isinstance(axes, _INTEGERS):
        if axes < 0:
            raise ValueError("'axes' must be at least 0.")
        static = a.raw_shape
        if static is None:
            n = rank(a)
            return range_(n - axes, n), list(range(axes))
        if axes > len(static):
            raise ValueError(
                f"'axes' must not be larger than the number of dimensions of tensor {a}."
            )
        return list(range(len(static) - axes, len(static))), list(range(axes))
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError("'axes' must be an integer or have length 2.")
        axes_a, axes_b = axes
        if isinstance(axes_a, _INTEGERS) and isinstance(axes_b, _INTEGERS):
            return [int(axes_a)], [int(axes_b)]
        if len(axes_a) != len(axes_b):
            raise ValueError(
                f"Different number of contraction axes 'a' and 'b', {len(axes_a)} != {len(axes_b)}."
            )
        return list(axes_a), list(axes_b)
    axes = convert_to_tensor(axes, dtypes.int32, "axes")
    return axes[0], axes[1]


def _as_matrix(
    x: Tensor, axes: Any, axes_first: bool
) -> tuple[Tensor, Any, list[int | None] | None]:
    """`x` with `axes` merged into one dimension and the free axes into the other.

    Returns:
        The matrix; the free dimensions, a list when they are known; what is known of them.
    """
    static = x.raw_shape
    if static is None or not isinstance(axes, list):
        return _as_matrix_dynamic(x, axes, axes_first)
    for i in axes:
        if not -len(static) <= i < len(static):
            raise IndexError(f"Axis {i} is out of range for a tensor of rank {len(static)}.")
    axes = [int(i) % len(static) for i in axes]
    free = [i for i in range(len(static)) if i not in axes]
    order = axes + free if axes_first else free + axes
    moved = x if order == sorted(order) else transpose(x, order)
    dims_free = [static[i] for i in free]
    groups = [_product([static[i] for i in axes]), _product(dims_free)]
    if not axes_first:
        groups.reverse()
    if groups.count(None) == 2:
        return _as_matrix_dynamic(x, axes, axes_first)
    matrix = reshape(moved, [-1 if g is None else g for g in groups])
    if None not in dims_free:
        return matrix, dims_free, dims_free

    return matrix, gather(shape(x), free), dims_free


def _product(dims: list[int | None]) -> int | None:
    return None if None in dims else math.prod(d or 0 for d in dims)


def _as_matrix_dynamic(
    x: Tensor, axes: Any, axes_first: bool
) -> tuple[Tensor, Any, list[int | None] | None]:
    static = x.raw_shape
    known = None
    if static is not None and isinstance(axes, list):
        known = [dim for i, dim in enumerate(static) if i not in {j % len(static) for j in axes}]
    x_shape, n = shape(x), rank(x)
    axes = convert_to_tensor(axes, dtypes.int32, "axes")
    axes = where(axes >= 0, axes, axes + n)
    free, _ = setdiff1d(range_(n), axes)
    dims_free = gather(x_shape, free)
    sizes = [reduce_prod(gather(x_shape, axes)), reduce_prod(dims_free)]
    order = [axes, free]
    if not axes_first:
        sizes.reverse()
        order.reverse()
    return reshape(transpose(x, concat(order, 0)), stack(sizes)), dims_free, known
