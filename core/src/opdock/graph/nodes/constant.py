"""`tf.constant` and the Const op."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import ShapeSig, define_op
from opdock.graph.nodes.traits import Fails, Traits
from opdock.shapes import Dimension, Shape
from opdock.values import to_array

const_op = define_op("Const", "-> output: dtype", "value: tensor, dtype: type")
const_op.declare(Traits(builtin=True, fails=Fails.NEVER))


@const_op.shape
def _const_shape(sig: ShapeSig) -> Shape:
    value, dtype = sig.attrs["value"], sig.attrs["dtype"]
    # All that reads the node takes the attribute for the type of the value.
    if value.dtype != dtype.np:
        own = dtypes.as_dtype(value.dtype).name
        raise ValueError(f"Type mismatch between value ({own}) and dtype ({dtype.name})")
    shape: Shape = value.shape
    return shape


const_op.not_differentiable()


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A tensor with a fixed value.

    Args:
        value: a number, string, nested list, array, or a TensorProto, which has a type and a
            shape of its own.
        dtype: the element type; inferred from `value` by default (Python floats are float32,
            integers int32).
        shape: the shape; a shorter `value` is extended by repeating its last element.
        name: the node's name.
        verify_shape: reject a `value` of any other shape instead.

    Raises:
        TypeError: `value` does not fit `dtype`; in eager programs also if there are neither as many
            elements as `shape` has nor one.
        ValueError: `value` is ragged, None, or has too many elements for `shape`.
    """
    from opdock.graph.nodes.graph import get_default_graph

    if type(value).__name__ == "TensorProto":  # of whichever package's messages
        from opdock.io.tensor_proto import make_ndarray

        value, dtype, shape = make_ndarray(value), None, None
    graph = get_default_graph()
    if graph.eager:
        value = _sizes_as_numbers(value)
    array = to_array(value, None if dtype is None else dtypes.as_dtype(dtype))
    if shape is not None:
        wanted = shapes.as_shape(shape)
        if graph.eager:
            _check_size(array, wanted)
        array = _fill_shape(array, wanted, verify_shape)
    elif array is value:
        array = array.copy()  # The caller may change their array; the graph may not.
    element = dtypes.as_dtype(array.dtype) if dtype is None else dtypes.as_dtype(dtype).base_dtype
    op = graph._create_op(
        const_op, graph._node_name(name or "Const") if not name or name[-1] != "/" else name[:-1],
        [], {"value": array, "dtype": element}, [element],
    )  # fmt: skip
    return op.outputs[0]


def constant_v2(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """`constant` of TensorFlow 2: a value fills a shape whole, or is a single element.

    Args:
        value, dtype, shape, name: see `constant`.

    Raises:
        TypeError: there are neither as many elements as `shape` has nor one.
    """
    if shape is not None:
        value = to_array(value, None if dtype is None else dtypes.as_dtype(dtype))
        _check_size(value, shapes.as_shape(shape))
    return constant(value, dtype, shape, name)


def _check_size(array: np.ndarray[Any, Any], shape: Shape) -> None:
    if shape is None or None in shape or array.size in (1, math.prod(shape)):  # type: ignore[arg-type]
        return
    raise TypeError(
        f"Expected Tensor's shape: {shape}, got {array.shape}. Only a single element is repeated "
        "here; tf.constant of TensorFlow 1 repeats the last one, in graphs."
    )


def _sizes_as_numbers(value: Any) -> Any:
    """Sizes of dimensions among numbers, which TensorFlow takes where it has all values at once."""
    if isinstance(value, (list, tuple)):
        return [_sizes_as_numbers(v) for v in value]
    if isinstance(value, Dimension):
        if value.value is None:
            raise ValueError("Cannot convert an unknown Dimension to a Tensor: ?")
        return value.value
    return value


def _fill_shape(array: np.ndarray[Any, Any], shape: Shape, verify: bool) -> np.ndarray[Any, Any]:
    if shape is None or None in shape:
        raise ValueError(f"A constant needs a fully defined shape, got {shapes.text(shape)}.")
    if verify and array.shape != shape:
        raise TypeError(f"Expected Tensor's shape: {shape}, got {array.shape}.")
    wanted = math.prod(shape)  # type: ignore[arg-type]
    if wanted >= 2**63:
        raise ValueError(f"A shape must have fewer than 2**63 elements, got {shapes.text(shape)}.")
    if wanted == 0:
        return np.empty(shape, array.dtype)
    if array.size > wanted:
        raise ValueError(
            f"Too many elements provided. Takes at most {wanted}, but got {array.size}."
        )
    if array.size == wanted:
        return array.reshape(shape).copy()  # type: ignore[arg-type]
    if array.size == 0:
        raise ValueError(f"A constant of shape {shape} cannot be filled from an empty value.")
    if array.size == 1:
        # Gigabytes of one value are a few bytes until a kernel wants them.
        return np.broadcast_to(array.reshape(()).copy(), shape)  # type: ignore[arg-type]
    flat = array.reshape(-1)
    try:
        out = np.full(wanted, flat[-1], array.dtype)
    except MemoryError as e:
        raise ValueError(f"A constant of shape {shapes.text(shape)} is too large: {e}") from None
    out[: flat.size] = flat
    return out.reshape(shape)
