"""Optional arguments as tensors."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.shapes import TensorShape, as_shape

__all__ = ["optional_param_to_tensor", "partial_shape_to_tensor"]


def optional_param_to_tensor(
    argument_name: str, argument_value: Any, argument_default: Any = 0,
    argument_dtype: Any = dtypes.int64,
) -> Tensor:  # fmt: skip
    """An argument as a tensor, or its default where it is None."""
    if argument_value is not None:
        return convert_to_tensor(argument_value, dtype=argument_dtype, name=argument_name)
    found: Tensor = constant(argument_default, dtype=argument_dtype, name=argument_name)
    return found


def partial_shape_to_tensor(shape_like: Any) -> Tensor:
    """A shape as a vector of int64, with -1 for what is unknown.

    Raises:
        ValueError: a tensor was given that is no vector.
        TypeError: it is none of int64.
    """
    try:
        dims = TensorShape(as_shape(shape_like)).as_list()
        return convert_to_tensor([-1 if d is None else d for d in dims], dtype=dtypes.int64)
    except (TypeError, ValueError):
        found = convert_to_tensor(shape_like, preferred_dtype=dtypes.int64)
        if found.shape.ndims is not None and found.shape.ndims != 1:
            raise ValueError(
                f"The given shape {shape_like} must be a 1-D tensor of tf.int64 values, but the "
                f"shape was {found.shape}."
            ) from None
        if found.dtype != dtypes.int64:
            raise TypeError(
                f"The given shape {shape_like} must be a 1-D tensor of tf.int64 values, but the "
                f"element type was {found.dtype.name}."
            ) from None
        return found
