"""Lists of tensors and tensors: many elements as one, rows as elements, and lists in a tensor."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import Handle
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.tensor_list import (
    as_long_as,
    element_shape,
    known_elements,
    tensor_list_length_op,
)
from opdock.shapes import Shape

__all__: list[str] = []

_SHAPED = "element_dtype: type, shape_type: {int32, int64}"

tensor_list_stack_op = define_op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
    "element_dtype: type, num_elements: int = -1",
)
tensor_list_gather_op = define_op(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
    "element_dtype: type",
)
tensor_list_from_tensor_op = define_op(
    "TensorListFromTensor",
    "tensor: element_dtype, element_shape: shape_type -> output_handle: variant", _SHAPED,
)  # fmt: skip
tensor_list_scatter_op = define_op(
    "TensorListScatter",
    "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: variant",
    _SHAPED,
)
tensor_list_scatter_v2_op = define_op(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 "
    "-> output_handle: variant", _SHAPED,
)  # fmt: skip
tensor_list_scatter_into_op = define_op(
    "TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant",
    "element_dtype: type",
)
tensor_list_concat_v1_op = define_op(
    "TensorListConcat", "input_handle: variant -> tensor: element_dtype, lengths: int64",
    "element_dtype: type, element_shape: shape = unknown",
)  # fmt: skip
tensor_list_concat_op = define_op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 "
    "-> tensor: element_dtype, lengths: int64", _SHAPED,
)  # fmt: skip
tensor_list_split_op = define_op(
    "TensorListSplit",
    "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant",
    _SHAPED,
)
tensor_list_push_back_batch_op = define_op(
    "TensorListPushBackBatch",
    "input_handles: variant, tensor: element_dtype -> output_handles: variant",
    "element_dtype: type",
).not_differentiable()
tensor_list_concat_lists_op = define_op(
    "TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant",
    "element_dtype: type",
).not_differentiable()  # fmt: skip


# ---------------------------------------------------------------- shapes
@tensor_list_stack_op.shape
def _stack_shape(sig: ShapeSig) -> Shape:
    rest, count = element_shape(sig, declared_by=1), sig.attrs["num_elements"]
    return None if rest is None else (None if count < 0 else count, *rest)


@tensor_list_gather_op.shape
def _gather_shape(sig: ShapeSig) -> Shape:
    (count,) = shapes.with_rank(sig.shapes[1], 1)
    rest = element_shape(sig, declared_by=2)
    return None if rest is None else (count, *rest)


@tensor_list_from_tensor_op.shape
@tensor_list_scatter_op.shape
@tensor_list_scatter_v2_op.shape
def _rows_shape(sig: ShapeSig) -> Shape:
    tensor = shapes.with_rank_at_least(sig.shapes[0], 1)
    declared = known_elements(sig, 1 if sig.op == "TensorListFromTensor" else 2)
    shapes.merge(None if tensor is None else tensor[1:], declared)
    return ()


@tensor_list_from_tensor_op.elements
@tensor_list_split_op.elements
def _elements_of_tensor(sig: ShapeSig) -> Handle:
    return Handle(sig.attrs["element_dtype"], known_elements(sig, 1))


@tensor_list_scatter_op.elements
@tensor_list_scatter_v2_op.elements
def _scattered_elements(sig: ShapeSig) -> Handle:
    return Handle(sig.attrs["element_dtype"], known_elements(sig, 2))


@tensor_list_scatter_into_op.elements
@tensor_list_push_back_batch_op.elements
def _same_elements(sig: ShapeSig) -> int:
    return 0


@tensor_list_concat_lists_op.elements
def _elements_of_both(sig: ShapeSig) -> Handle:
    dtype, merged = sig.attrs["element_dtype"], None
    for i, name in enumerate("ab"):
        handle = sig.handle(i)
        if handle is None:
            continue
        if handle.dtype is not dtype:
            raise ValueError(
                f"input_{name}.type != element_dtype: {dtypes.proto_name(handle.dtype)} vs. "
                f"{dtypes.proto_name(dtype)}"
            )
        merged = shapes.merge(merged, handle.shape)
    return Handle(dtype, merged)


@tensor_list_scatter_into_op.shape
def _scatter_into_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    shapes.with_rank_at_least(sig.shapes[1], 1)
    shapes.with_rank(sig.shapes[2], 1)
    return ()


@tensor_list_concat_v1_op.shape
@tensor_list_concat_op.shape
def _concat_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    versioned = sig.op == "TensorListConcatV2"
    known = element_shape(sig, declared_by=1 if versioned else None)
    if not versioned:
        known = shapes.merge(sig.attrs["element_shape"], known)
    return [(None, *known[1:]) if known else None, (None,)]


@tensor_list_split_op.shape
def _split_shape(sig: ShapeSig) -> Shape:
    tensor = shapes.with_rank_at_least(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[2], 1)
    # An element is a number of rows.
    rows = None if tensor is None else (None, *tensor[1:])
    shapes.merge(rows, known_elements(sig, 1))
    return ()


@tensor_list_push_back_batch_op.shape
def _batch_shape(sig: ShapeSig) -> Shape:
    handles = shapes.with_rank(sig.shapes[0], 1)
    element_shape(sig)
    rows = shapes.with_rank_at_least(sig.shapes[1], 1)
    return handles if rows is None else shapes.merge(handles, rows[:1])


@tensor_list_concat_lists_op.shape
def _concat_lists_shape(sig: ShapeSig) -> Shape:
    _elements_of_both(sig)
    return shapes.merge(*sig.shapes)


# ---------------------------------------------------------------- gradients
def _rest_of(tensor: Tensor) -> Tensor:
    """The shape of a tensor's rows."""
    rest: Tensor = get("Slice")(get("Shape")(tensor), [1], [-1])
    return rest


def _like(grad: Tensor, tensor: Tensor) -> Tensor:
    grad.set_shape(tensor.raw_shape)
    return grad


@tensor_list_stack_op.gradient
def _stack_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [tensor_list_from_tensor_op(grad, _rest_of(grad)), None]


@tensor_list_from_tensor_op.gradient
def _from_tensor_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None]
    tensor = op.inputs[0]
    full = as_long_as(grad, op.outputs[0])
    dtype = tensor.dtype.base_dtype
    return [_like(tensor_list_stack_op(full, _rest_of(tensor), element_dtype=dtype), tensor), None]


@tensor_list_gather_op.gradient
def _gather_gradient(op: Operation, grad: Tensor) -> list[Any]:
    items, indices, _ = op.inputs
    # An element may have been taken several times.
    sums = get("UnsortedSegmentSum")(grad, indices, tensor_list_length_op(items))
    return [tensor_list_from_tensor_op(sums, _rest_of(sums)), None, None]


@tensor_list_scatter_op.gradient
@tensor_list_scatter_v2_op.gradient
def _scatter_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    rest = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    return [_gathered(grad, op.outputs[0], op.inputs[0], op.inputs[1]), *rest]


@tensor_list_scatter_into_op.gradient
def _scatter_into_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None, None]
    _, tensor, indices = op.inputs
    blank = get("ZerosLike")(tensor)
    before = tensor_list_scatter_into_op(as_long_as(grad, op.outputs[0]), blank, indices)
    kept = as_long_as(before, op.inputs[0])
    return [kept, _gathered(grad, op.outputs[0], tensor, indices), None]


def _gathered(grad: Tensor, items: Tensor, tensor: Tensor, indices: Tensor) -> Tensor:
    """The gradient of the rows that went to these places of a list."""
    dtype = tensor.dtype.base_dtype
    full = as_long_as(grad, items)
    return _like(
        tensor_list_gather_op(full, indices, _rest_of(tensor), element_dtype=dtype), tensor
    )


@tensor_list_concat_v1_op.gradient
@tensor_list_concat_op.gradient
def _concat_gradient(op: Operation, grad: Tensor | None, _: Any) -> list[Any]:
    rest = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    whole = get("ConcatV2")([[-1], _rest_of(grad)], 0)
    return [tensor_list_split_op(grad, whole, op.outputs[1]), *rest]


@tensor_list_split_op.gradient
def _split_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None, None]
    tensor, _, lengths = op.inputs
    dtype = tensor.dtype.base_dtype
    whole = get("ConcatV2")([[-1], _rest_of(tensor)], 0)
    # An empty list stands for zeros: the lengths tell how many.
    rows, _ = tensor_list_concat_op(grad, whole, lengths, element_dtype=dtype)
    return [_like(rows, tensor), None, None]


def concat(items: Tensor, dtype: DType, shape: Any) -> Tensor:
    """The elements one after the other along their first dimension.

    Args:
        items: the list.
        dtype: the elements' type.
        shape: the elements' shape, which only for the first dimension may be -1, for unknown.
    """
    none = convert_to_tensor([], dtypes.int64)
    rows: Tensor = tensor_list_concat_op(items, shape, none, element_dtype=dtype.base_dtype)[0]
    return rows
