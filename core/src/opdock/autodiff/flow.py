"""What the gradients of branches and loops share: what gradients flow to, and zeros for none."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.ops import tensor_list
from opdock.ops.fill import zeros_like
from opdock.shapes import Shape

__all__ = [
    "dense", "gradient_or_zeros", "is_source", "may_flow", "returned", "start_zeros", "total_shape",
    "total_shape_of", "zeros",
]  # fmt: skip

# Ops that read a variable through its handle; any other use of a resource has no gradient.
_READS: Final = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")


def may_flow(dtype: DType) -> bool:
    """Whether values of a type can have a gradient."""
    base = dtype.base_dtype
    return base.is_floating or base.is_complex or base in (dtypes.resource, dtypes.variant)


def is_source(tensor: Tensor, body: FuncGraph) -> bool:
    """Whether a parameter has a gradient: numbers, lists, and handles of variables."""
    if tensor.dtype.base_dtype is dtypes.resource:
        return _variable_dtype(tensor) is not None
    return may_flow(tensor.dtype)


def gradient_or_zeros(parameter: Tensor, found: Mapping[Tensor, Any]) -> Tensor:
    """The gradient that was found for a parameter; zeros where there is none."""
    grad = found.get(parameter)
    return zeros_like(parameter) if grad is None else convert_to_tensor(grad)


def _variable_dtype(handle: Tensor) -> DType | None:
    """The type of the variable behind a handle, as its readers in the body (and below) say."""
    for consumer in handle.consumers():
        if consumer.type in _READS:
            dtype: DType = consumer.attrs["dtype"]
            return dtype
        for body in consumer.attrs.values():
            if isinstance(body, FuncGraph):
                first = 1 if consumer.type.endswith("If") else 0
                for i, tensor in enumerate(consumer.inputs[first:]):
                    if tensor is handle and i < len(body.inputs):
                        inner = _variable_dtype(body.inputs[i])
                        if inner is not None:
                            return inner
    return None


def start_zeros(op: Operation, index: int, body: FuncGraph) -> Tensor:
    """The gradient of a loop's result that nobody asked for."""
    parameter = body.inputs[index]
    if parameter.dtype.base_dtype is dtypes.resource:
        return _variable_zeros(op.inputs[index], _variable_dtype(parameter))
    return _zeros_like(op.outputs[index])


def zeros(parameter: Tensor, dtype: DType | None = None) -> Tensor:
    """The gradient of a parameter that has no influence here.

    Args:
        parameter: a body's.
        dtype: of the variable behind a handle, if a reader in another body says it.
    """
    if parameter.dtype.base_dtype is dtypes.resource:
        return _variable_zeros(parameter, dtype or _variable_dtype(parameter))
    return _zeros_like(parameter)


def _zeros_like(tensor: Tensor) -> Tensor:
    base, known = tensor.dtype.base_dtype, tensor.raw_shape
    if base is dtypes.variant:
        return tensor_list.zeros()
    if known is not None and None not in known:
        size = convert_to_tensor(list(known), dtypes.int32)
        return get("Fill")(size, convert_to_tensor(0, base))  # type: ignore[no-any-return]
    return get("ZerosLike")(tensor)  # type: ignore[no-any-return]


def _variable_zeros(handle: Tensor, dtype: DType | None) -> Tensor:
    zero = convert_to_tensor(0, dtype)
    return get("Fill")(get("VariableShape")(handle), zero)  # type: ignore[no-any-return]


def total_shape(parameter: Tensor) -> Shape:
    """The static shape of a parameter's gradient."""
    return None if parameter.dtype.base_dtype is dtypes.resource else parameter.raw_shape


def total_shape_of(variable: Tensor, dtype: DType) -> Tensor:
    """The shape of a tensor, or of the variable behind a handle, when the graph runs."""
    is_handle = variable.dtype.base_dtype is dtypes.resource
    shape: Tensor = get("VariableShape" if is_handle else "Shape")(variable, out_type=dtype)
    return shape


def returned(tensor: Tensor) -> Tensor:
    """A value that the body makes itself, not a parameter handed back."""
    return get("Identity")(tensor)  # type: ignore[no-any-return]


def dense(grad: Any) -> Any:
    """A gradient as one tensor: what a body returns must have one type in every branch and turn."""
    if grad is None:
        return None
    with warnings.catch_warnings():
        # Rows of a table of unknown size: nothing that the user could do about it.
        warnings.simplefilter("ignore", UserWarning)
        return convert_to_tensor(grad)
