"""Lists of tensors as values: what loops and branches record for their gradients.

A list is never changed: pushing makes a longer one that shares the rest. So a step can be
differentiated again, and nothing outlives it.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import ShapeSig, define_op, get
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
tensor_list_concat_op = define_op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 "
    "-> tensor: element_dtype, lengths: int64",
    "element_dtype: type, shape_type: {int32, int64}",
)
tensor_list_split_op = define_op(
    "TensorListSplit",
    "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant",
    "element_dtype: type, shape_type: {int32, int64}",
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


@tensor_list_concat_op.shape
def _concat_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    known = sig.const(1)
    if known is None or known.ndim == 0:
        return [None, (None,)]
    return [(None, *(None if d < 0 else int(d) for d in known[1:])), (None,)]


@tensor_list_split_op.shape
def _split_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[2], 1)
    return ()


@tensor_list_concat_op.gradient
def _concat_gradient(op: Operation, grad: Tensor | None, _: Any) -> list[Any]:
    if grad is None:
        return [None, None, None]
    return [tensor_list_split_op(grad, op.inputs[1], op.outputs[1]), None, None]


@tensor_list_split_op.gradient
def _split_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None, None]
    dtype = op.inputs[0].dtype.base_dtype
    # An empty list stands for zeros: the lengths tell how many.
    rows, _ = tensor_list_concat_op(grad, op.inputs[1], op.inputs[2], element_dtype=dtype)
    return [rows, None, None]


@tensor_list_push_back_op.gradient
def _push_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None]
    like = op.inputs[1]
    known = like.raw_shape
    unknown = like.dtype.base_dtype is not dtypes.variant and (known is None or None in known)
    # An empty list stands for zeros, and a list that is too short for more of them.
    rest, element = tensor_list_pop_back_op(
        grad, get("Shape")(like) if unknown else _shape_of(like),
        element_dtype=like.dtype.base_dtype, _zeros=True,
    )  # fmt: skip
    element.set_shape(known)
    return [rest, element]


@tensor_list_pop_back_op.gradient
def _pop_gradient(op: Operation, rest: Tensor | None, element: Tensor | None) -> list[Any]:
    popped = op.outputs[1]
    if rest is None and element is None:
        return [None, None]
    if rest is None:
        rest = empty(popped)
    if element is None:
        # The rest keeps its place.
        is_list = popped.dtype.base_dtype is dtypes.variant
        element = empty(popped) if is_list else get("ZerosLike")(popped)
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
    rest, element = tensor_list_pop_back_op(
        items, _shape_of(like), element_dtype=like.dtype.base_dtype
    )
    return rest, element


def concat(items: Tensor, dtype: DType, shape: Any) -> Tensor:
    """The elements one after the other along their first dimension.

    Args:
        items: the list.
        dtype: the elements' type.
        shape: the elements' shape, which only for the first dimension may be -1, for unknown.
    """
    from opdock.graph.nodes.convert import convert_to_tensor

    none = convert_to_tensor([], dtypes.int64)
    rows: Tensor = tensor_list_concat_op(items, shape, none, element_dtype=dtype.base_dtype)[0]
    return rows


def _shape_of(like: Tensor) -> Tensor:
    from opdock.graph.nodes.convert import convert_to_tensor

    known = like.raw_shape
    shape: Any = -1 if known is None else [-1 if d is None else d for d in known]
    return convert_to_tensor(shape, dtypes.int32)
