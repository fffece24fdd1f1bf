"""Gradients of broadcasting: a gradient of the result's shape summed back to an input's shape.

What static shapes decide is decided while the graph is built: usually no node is added, or one
Sum. Only dimensions that both sides leave open need `BroadcastGradientArgs` at run time.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.shapes import Shape

__all__: list[str] = []

broadcast_gradient_args_op = define_op(
    "BroadcastGradientArgs", "s0: T, s1: T -> r0: T, r1: T", "T: {int32, int64} = DT_INT32"
).not_differentiable()


@broadcast_gradient_args_op.shape
def _(sig: ShapeSig) -> list[Shape]:
    for shape in sig.shapes:
        shapes.with_rank(shape, 1)
    return [(None,), (None,)]


def reduced_axes(shape: Shape, other: Shape) -> list[int] | None:
    """Axes of the broadcast of two shapes over which a gradient for `shape` is summed.

    Returns None where the static shapes do not decide it.
    """
    if shape is None or other is None:
        return None
    rank = max(len(shape), len(other))
    mine = (0,) * (rank - len(shape)) + shape  # 0 stands for an axis that is not there
    theirs = (1,) * (rank - len(other)) + other
    axes = []
    for axis, (dim, beside) in enumerate(zip(mine, theirs, strict=True)):
        if axis < rank - len(shape):
            axes.append(axis)
        elif dim == 1 and beside != 1:
            # Summing an axis that turns out to have size 1 on both sides changes nothing.
            axes.append(axis)
        elif dim is None and beside != 1:
            return None
    return axes


def unbroadcast(grad: Any, x: Tensor, other: Tensor) -> Any:
    """`grad`, which has the shape of the broadcast of `x` and `other`, summed to `x`'s shape.

    Args:
        grad: the gradient of the result, a Tensor; None passes through.
        x: the input whose gradient is wanted.
        other: what `x` was broadcast with: the other input, or the result.
    """
    if grad is None:
        return None
    shape = x.raw_shape
    if shape == grad.raw_shape and shapes.is_fully_defined(shape):
        return grad
    axes = reduced_axes(shape, other.raw_shape)
    if axes == [] and _in_another_rank(grad, shape):
        return get("Reshape")(grad, list(shape or ()))
    if axes is None:
        shape_of = get("Shape")
        sizes = shape_of(x)
        axes_tensor = broadcast_gradient_args_op(sizes, shape_of(other))[0]
        return get("Reshape")(get("Sum")(grad, axes_tensor), sizes)
    return sum_axes(grad, axes, x, _missing(x.raw_shape, other.raw_shape))


def unbroadcast_pair(grad_x: Any, grad_y: Any, x: Tensor, y: Tensor) -> list[Any]:
    """`unbroadcast` for both inputs of a binary op; either gradient may be None."""
    open_x = reduced_axes(x.raw_shape, y.raw_shape) is None and grad_x is not None
    open_y = reduced_axes(y.raw_shape, x.raw_shape) is None and grad_y is not None
    if not (open_x and open_y) or _same_known(x.raw_shape, y.raw_shape):
        return [unbroadcast(grad_x, x, y), unbroadcast(grad_y, y, x)]
    shape_of, total, reshape = get("Shape"), get("Sum"), get("Reshape")
    sizes_x, sizes_y = shape_of(x), shape_of(y)
    axes_x, axes_y = broadcast_gradient_args_op(sizes_x, sizes_y)
    return [
        reshape(total(grad_x, axes_x), sizes_x),
        reshape(total(grad_y, axes_y), sizes_y),
    ]


def _in_another_rank(grad: Tensor, shape: Shape) -> bool:
    """Whether a program gave a scalar's gradient as [1] or the like, in which TF sees no error."""
    if grad.raw_shape is None or not shapes.is_fully_defined(shape):
        return False
    known = shapes.is_fully_defined(grad.raw_shape)
    same_size = shapes.num_elements(grad.raw_shape) == shapes.num_elements(shape)
    return known and same_size and len(grad.raw_shape) != len(shape or ())


def _same_known(a: Shape, b: Shape) -> bool:
    return a == b and shapes.is_fully_defined(a)


def _missing(shape: Shape, other: Shape) -> int:
    assert shape is not None
    assert other is not None
    return max(len(other) - len(shape), 0)


def sum_axes(grad: Any, axes: list[int], x: Tensor, missing: int) -> Any:
    """`grad` summed over `axes`, in the shape of `x`, which lacks the first `missing` axes."""
    if not axes:
        return grad
    leading = sum(axis < missing for axis in axes)
    if leading == len(axes):
        return get("Sum")(grad, axes)
    if not leading:
        return get("Sum")(grad, axes, keep_dims=True)
    shape = x.raw_shape
    sizes = list(shape) if shapes.is_fully_defined(shape) and shape is not None else get("Shape")(x)
    return get("Reshape")(get("Sum")(grad, axes), sizes)
