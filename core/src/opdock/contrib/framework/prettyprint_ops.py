"""Tensors that print what they are when they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable import Variable
from opdock.ops.argmax import argmax
from opdock.ops.cast import cast
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.printing import Print

__all__ = ["print_op"]


def print_op(
    input_: Any, data: Any = None, message: str | None = None, first_n: int | None = None,
    summarize: int = 20, print_tensor_name: bool = True, print_tensor_type: bool = True,
    print_shape: bool = True, summarize_indicator_vector: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """A tensor that prints its name, type, shape and value each time that it is computed.

    Args:
        input_: a Tensor, Variable, SparseTensor or TensorArray.
        data: a list of more of them to print.
        message: what stands before.
        first_n: how many times; always by default.
        summarize: how many elements of each.
        print_tensor_name, print_tensor_type, print_shape: whether these are printed.
        summarize_indicator_vector: whether the place of the first True of a bool tensor is printed.
        name: a name for the op.

    Returns:
        What was given.

    Raises:
        ValueError: a value of another kind.
    """
    told: list[Any] = []
    for item in [input_, *(data or ())]:
        told += _heading(item, print_tensor_name, print_tensor_type, print_shape)
        if summarize_indicator_vector and item.dtype == dtypes.bool_:
            told += ["First True in Boolean tensor at:", argmax(cast(item, dtypes.uint8), 0)]
        told += _values(item)
    if isinstance(input_, Tensor | Variable):
        return Print(input_, told, message or "", first_n, summarize, name)
    printed = Print(constant([]), told, message or "", first_n, summarize, name)
    with control_dependencies([printed]):
        if isinstance(input_, TensorArray):
            return input_.identity()
        return SparseTensor(
            *(get("Identity")(t) for t in (input_.indices, input_.values, input_.dense_shape))
        )


def _heading(item: Any, name: bool, dtype: bool, shape: bool) -> Iterator[Any]:
    kinds = {Variable: "Variable", SparseTensor: "SparseTensor", TensorArray: "TensorArray",
             Tensor: "Tensor"}  # fmt: skip
    kind = next((text for k, text in kinds.items() if isinstance(item, k)), None)
    if kind is None:
        raise ValueError(
            f"input_ must be of type Tensor, SparseTensor or TensorArray, not {type(item).__name__}"
        )
    if name and kind == "Tensor":
        yield f"Name: {item.name}"
    if dtype:
        yield f"Type: {kind} ({item.dtype.name})"
    if not shape:
        return
    if kind == "SparseTensor":
        yield from ("Shape:", item.dense_shape)
    elif kind == "TensorArray":
        yield from ("Size:", item.size())
    elif kind == "Tensor":
        yield f"Shape: {item.shape.dims}"


def _values(item: Any) -> list[Any]:
    if isinstance(item, SparseTensor):
        return ["Sparse indices:", item.indices, "Sparse values:", item.values]
    return ["Value:", item.stack() if isinstance(item, TensorArray) else item]
