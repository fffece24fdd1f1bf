"""Tensors whose shapes are made sure of, and graphs that are found from tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import rank as rank_of
from opdock.ops.array import reshape, size
from opdock.ops.array import shape as shape_of
from opdock.ops.check import Assert
from opdock.ops.compare import equal, logical_or
from opdock.ops.composed import confusion
from opdock.ops.composed.check_static import assert_scalar
from opdock.ops.control import cond
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_all, reduce_sum
from opdock.ops.sums import add_n
from opdock.shapes import TensorShape

__all__ = [
    "assert_scalar_int", "get_graph_from_inputs", "get_name_scope", "reduce_sum_n",
    "remove_squeezable_dimensions", "with_same_shape", "with_shape",
]  # fmt: skip


def get_graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    """The graph of tensors and operations, which must be one.

    Args:
        op_input_list: a list of them, and of other things, which do not count.
        graph: the graph that they should be in; by default that of the first one, or where there
            is none, the default graph.

    Raises:
        TypeError: the graph is none, or the list.
        ValueError: they are in several graphs.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError("Input graph needs to be a Graph.")
    first = None
    for one in tuple(op_input_list):
        if not isinstance(one, Tensor | Operation):
            continue
        if graph is None:
            graph, first = one.graph, one
        elif one.graph is not graph:
            if first is None:
                raise ValueError(f"{one} is not from the passed-in graph.")
            raise ValueError(f"{one} must be from the same graph as {first}.")
    return graph or get_default_graph()


def get_name_scope() -> str:
    """The current name scope of the default graph, without a slash at its end."""
    return get_default_graph().get_name_scope()


def assert_scalar_int(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor that is a whole number.

    Raises:
        ValueError: it is not.
    """
    with name_scope(name, "assert_scalar_int", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(
                f"Expected integer type for {tensor.name}, received type: {tensor.dtype}."
            )
        found: Tensor = assert_scalar(tensor, name=scope)
        return found


def reduce_sum_n(tensors: Any, name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors.

    Raises:
        ValueError: there are none.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [reduce_sum(t, name=f"{t.op.name}/sum") for t in tensors]
        return sums[0] if len(sums) == 1 else add_n(sums, name=scope)


def remove_squeezable_dimensions(
    predictions: Any, labels: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Both, one without its last dimension of 1 if it has a dimension more than the other."""
    labels, predictions = confusion.remove_squeezable_dimensions(labels, predictions, name=name)
    return predictions, labels


def with_same_shape(expected_tensor: Any, tensor: Any) -> Tensor:
    """A tensor that is made sure to have the shape of another one; see `with_shape`."""
    with name_scope(f"{tensor.op.name}/", values=[expected_tensor, tensor]):
        shape = expected_tensor.shape
        known = shape.is_fully_defined()
        return with_shape(
            shape.as_list() if known else shape_of(expected_tensor, name="expected_shape"), tensor
        )


def with_shape(expected_shape: Any, tensor: Any) -> Tensor:
    """A tensor that is made sure to have a shape, now or when it is computed.

    Args:
        expected_shape: numbers, of which -1 is any; an array or a tensor of them, int32.
        tensor: the tensor. One of one element becomes a scalar, if that is the shape.

    Raises:
        ValueError: its shape is known to be another one, or the shape is no vector of int32.
        InvalidArgumentError: the shape is another one when it is computed.
    """
    if isinstance(tensor, SparseTensor):
        raise ValueError("SparseTensor not supported.")
    late = isinstance(expected_shape, Tensor)
    if not late:
        expected_shape = _vector(expected_shape, tensor)
    elif expected_shape.dtype.base_dtype != dtypes.int32:
        raise _wrong(f"dtype {expected_shape.dtype}", expected_shape, tensor)
    shape = tensor.shape
    if late or not shape.is_fully_defined():
        return _when_computed(expected_shape, tensor, late)
    if shape.is_compatible_with([None if n == -1 else n for n in expected_shape.tolist()]):
        return tensor  # type: ignore[no-any-return]
    if not len(expected_shape) and shape.is_compatible_with([1]):
        with name_scope(f"{tensor.op.name}/", values=[tensor]):
            return reshape(tensor, [])
    raise ValueError(
        f"Invalid shape for tensor {tensor.name}, expected {expected_shape}, got {shape}."
    )


def _wrong(what: str, shape: Any, tensor: Any) -> ValueError:
    return ValueError(f"Invalid {what} for shape {shape} expected of tensor {tensor.name}.")


def _vector(shape: Any, tensor: Any) -> np.ndarray[Any, Any]:
    if isinstance(shape, TensorShape):
        shape = [-1 if n is None else n for n in shape.as_list()]
    if isinstance(shape, list | tuple):
        array = np.asarray(shape, None if shape else np.int32)
        shape = array.astype(np.int32) if array.dtype == np.int64 else array
    if shape.ndim > 1:
        raise _wrong(f"rank {shape.ndim}", shape, tensor)
    if shape.dtype != np.int32:
        raise _wrong(f"dtype {shape.dtype}", shape, tensor)
    return np.asarray(shape)


def _when_computed(expected: Any, tensor: Any, late: bool) -> Tensor:
    with name_scope(f"{tensor.op.name}/", values=[tensor]):
        if not late and not len(expected):
            return reshape(tensor, [])
        with name_scope("assert_shape", values=[tensor]) as scope:
            actual = shape_of(tensor, name="actual")
            # Shapes of another length cannot be compared element by element.
            fits = cond(
                equal(size(expected), rank_of(tensor)),
                lambda: reduce_all(logical_or(equal(expected, -1), equal(expected, actual))),
                lambda: convert_to_tensor(False),
            )
            words = f"Wrong shape for {tensor.name} [expected] [actual]."
            checked = Assert(fits, [words, expected, actual], name=scope)
        with control_dependencies([checked]):
            result = identity(tensor)
        if not late:
            result.set_shape([None if n == -1 else int(n) for n in expected])
        return result
