"""Lists of tensors as values: what loops and branches record for their gradients.

A list is never changed: pushing makes a longer one that shares the rest. So a step can be
differentiated again, and nothing outlives it.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.operation import Operation, Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.shapes import Shape

__all__: list[str] = []

empty_tensor_list_op = define_op(
    "EmptyTensorList", "element_shape: shape_type, max_num_elements: int32 -> handle: variant",
    "element_dtype: type, shape_type: {int32, int64}",
).not_differentiable()  # fmt: skip
tensor_list_push_back_op = define_op(
    "TensorListPushBack",
    "input_handle: variant, tensor: element_dtype -> output_handle: variant",
    "element_dtype: type",
)
tensor_list_pop_back_op = define_op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    "element_dtype: type",
)
tensor_list_length_op = define_op(
    "TensorListLength", "input_handle: variant -> length: int32"
).not_differentiable()


@empty_tensor_list_op.shape
@tensor_list_length_op.shape
def _scalar_shape(sig: ShapeSig) -> Shape:
    return ()


@tensor_list_push_back_op.shape
def _push_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    return ()


@tensor_list_pop_back_op.shape
def _pop_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    known = sig.const(1)
    if known is None or known.ndim == 0:
        return [(), None]
    return [(), tuple(None if d < 0 else int(d) for d in known)]


@tensor_list_push_back_op.gradient
def _push_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None]
    rest, element = pop(grad, op.inputs[1])
    return [rest, element]


@tensor_list_pop_back_op.gradient
def _pop_gradient(op: Operation, rest: Tensor | None, element: Tensor | None) -> list[Any]:
    if element is None:
        return [rest, None]
    if rest is None:
        rest = empty(op.outputs[1])
    return [tensor_list_push_back_op(rest, element), None]


def empty(like: Tensor) -> Tensor:
    """An empty list for elements of the type of `like`."""
    handle: Tensor = empty_tensor_list_op(-1, -1, element_dtype=like.dtype.base_dtype)
    return handle


def push(items: Tensor, element: Tensor) -> Tensor:
    """The list with one more element at its end."""
    handle: Tensor = tensor_list_push_back_op(items, element)
    return handle


def pop(items: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """(the list without its last element, that element).

    Args:
        items: the list.
        like: a tensor of the element's type and static shape.
    """
    known = like.raw_shape
    shape: Any = -1 if known is None else [-1 if d is None else d for d in known]
    from opdock.graph.convert import convert_to_tensor

    rest, element = tensor_list_pop_back_op(
        items, convert_to_tensor(shape, dtypes.int32), element_dtype=like.dtype.base_dtype
    )
    return rest, element
