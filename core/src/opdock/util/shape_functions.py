"""The shape functions of TF's internal tree: of an operation, the shapes of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.shapes import TensorShape

__all__ = [
    "broadcast_shape",
    "call_cpp_shape_fn",
    "has_fully_defined_shape",
    "is_broadcast_compatible",
    "no_outputs",
    "rank",
    "scalar_shape",
    "unchanged_shape",
    "unchanged_shape_with_rank",
    "unchanged_shape_with_rank_at_least",
    "unchanged_shape_with_rank_at_most",
    "unknown_shape",
]

_ShapeFunction = Callable[[Operation], list[TensorShape]]


def call_cpp_shape_fn(op: Operation, require_shape_fn: bool = True) -> dict[str, Any]:
    """What TensorFlow's own library would infer of an operation: the shapes that it has.

    Returns:
        A dict with `shapes`, one an output; `handle_data`, None for each; `inputs_needed`, none.
    """
    return {
        "shapes": [output.shape.as_proto() for output in op.outputs],
        "handle_data": [None for _ in op.outputs],
        "inputs_needed": b"",
    }


def unknown_shape(op: Operation) -> list[TensorShape]:
    """Shapes of which nothing is known, one an output."""
    return [TensorShape(None) for _ in op.outputs]


def scalar_shape(unused_op: Any) -> list[TensorShape]:
    """The shape of one scalar."""
    return [TensorShape([])]


def no_outputs(unused_op: Any) -> list[TensorShape]:
    """No shape: the operation has no outputs."""
    return []


def unchanged_shape(op: Operation) -> list[TensorShape]:
    """The shape of the first input."""
    return [op.inputs[0].get_shape()]


def unchanged_shape_with_rank(rank: int) -> _ShapeFunction:
    """A function that gives the shape of the first input, which has to have this rank."""
    return lambda op: [op.inputs[0].get_shape().with_rank(rank)]


def unchanged_shape_with_rank_at_least(rank: int) -> _ShapeFunction:
    """A function that gives the shape of the first input, which has to have this rank or more."""
    return lambda op: [op.inputs[0].get_shape().with_rank_at_least(rank)]


def unchanged_shape_with_rank_at_most(rank: int) -> _ShapeFunction:
    """A function that gives the shape of the first input, which has to have this rank or less."""
    return lambda op: [op.inputs[0].get_shape().with_rank_at_most(rank)]


def has_fully_defined_shape(tensor: Any) -> bool:
    """Whether all dimensions of a tensor are known."""
    known: bool = tensor.shape.is_fully_defined()
    return known


def rank(tensor: Any) -> int | None:
    """The static rank of a tensor; None if it is not known or there is no tensor."""
    return tensor.shape.ndims if isinstance(tensor, Tensor) else None


def is_broadcast_compatible(shape_x: TensorShape, shape_y: TensorShape) -> bool:
    """Whether shapes of known ranks can be broadcast; False if a rank is not known."""
    if shape_x.ndims is None or shape_y.ndims is None:
        return False
    try:
        shapes.broadcast(shape_x.raw, shape_y.raw)
    except ValueError:
        return False
    return True


def broadcast_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape to which two shapes broadcast.

    Raises:
        ValueError: they do not.
    """
    try:
        return TensorShape(shapes.broadcast(shape_x.raw, shape_y.raw))
    except ValueError as e:
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}") from e
