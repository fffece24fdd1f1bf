"""Lists of tensors as values: what loops and branches record for their gradients.

A list is never changed: pushing makes a longer one that shares the rest. So a step can be
differentiated again, and nothing outlives it. A gradient that nobody asked for is the list that
stands for zeros, of any length.
"""

from __future__ import annotations

from typing import Any, Final

from opdock import dtypes, shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import Handle
from opdock.graph.nodes.traits import Moves, Traits
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
).declare(Traits(moves=Moves.PUSH))
tensor_list_pop_back_op = define_op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    "element_dtype: type",
).declare(Traits(moves=Moves.POP))
tensor_list_length_op = define_op(
    "TensorListLength", "input_handle: variant -> length: int32"
).not_differentiable()
tensor_list_reserve_op = define_op(
    "TensorListReserve",
    "element_shape: shape_type, num_elements: int32 -> handle: variant",
    "element_dtype: type, shape_type: {int32, int64}",
).not_differentiable()
tensor_list_element_shape_op = define_op(
    "TensorListElementShape",
    "input_handle: variant -> element_shape: shape_type",
    "shape_type: {int32, int64}",
).not_differentiable()
tensor_list_resize_op = define_op(
    "TensorListResize", "input_handle: variant, size: int32 -> output_handle: variant"
)
tensor_list_get_item_op = define_op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: int32 -> item: element_dtype",
    "element_dtype: type",
)
tensor_list_set_item_op = define_op(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
    "element_dtype: type",
)


@empty_tensor_list_op.shape
@tensor_list_length_op.shape
@tensor_list_reserve_op.shape
@tensor_list_resize_op.shape
@tensor_list_set_item_op.shape
def _scalar_shape(sig: ShapeSig) -> Shape:
    return ()


@tensor_list_element_shape_op.shape
def _element_shape_shape(sig: ShapeSig) -> Shape:
    elements = sig.handle(0)
    if elements is None or elements.shape is None:
        return None  # A scalar where the rank is unknown.
    return (len(elements.shape),)


@tensor_list_get_item_op.shape
def _item_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[1], 0)
    return element_shape(sig, declared_by=2)


@tensor_list_push_back_op.shape
def _push_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    element_shape(sig)
    return ()


@tensor_list_pop_back_op.shape
def _pop_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    found, declared = element_shape(sig), known_elements(sig, 1)
    # Where they contradict each other, the error comes when the element turns out to be missing.
    return [(), shapes.merge(found, declared) if shapes.is_compatible(found, declared) else found]


@empty_tensor_list_op.elements
@tensor_list_reserve_op.elements
def _declared_elements(sig: ShapeSig) -> Handle | None:
    if "_zeros" in sig.attrs:
        return None  # Of any type.
    return Handle(sig.attrs["element_dtype"], known_elements(sig, 0))


@tensor_list_push_back_op.elements
@tensor_list_pop_back_op.elements
@tensor_list_set_item_op.elements
@tensor_list_resize_op.elements
def _same_elements(sig: ShapeSig) -> int:
    return 0


def known_elements(sig: ShapeSig, index: int) -> Shape:
    """What an input `element_shape` says when the graph is built; a scalar says nothing."""
    return None if sig.shapes[index] == () else sig.const_shape(index)


_OTHER: Final = "Expected list with element dtype {1} but got list with element dtype {0}"
_READ: Final = (
    "Trying to read from list with wrong element dtype. List has type {} but expected type {}"
)
_PUSHED: Final = (
    "Trying to push to list with wrong element dtype. List has type {} but trying to push element "
    "with type {}"
)
_WRONG: Final = {
    **dict.fromkeys(("TensorListPushBack", "TensorListPushBackBatch"), _PUSHED),
    **dict.fromkeys(("TensorListPopBack", "TensorListStack"), _READ),
    **dict.fromkeys(("TensorListConcat", "TensorListConcatV2"), _READ),
}


def element_shape(sig: ShapeSig, declared_by: int | None = None) -> Shape:
    """The static shape of the elements of the list that is input 0.

    Args:
        sig: a node that takes such elements out of the list, or puts them in.
        declared_by: the input that says once more which shape they have.

    Raises:
        ValueError: the list has elements of another type, or of a shape that does not fit.
    """
    declared = None if declared_by is None else known_elements(sig, declared_by)
    elements, wanted = sig.handle(0), sig.attrs["element_dtype"]
    if elements is None:
        return declared
    if elements.dtype is not wanted:
        names = dtypes.proto_name(elements.dtype), dtypes.proto_name(wanted)
        raise ValueError(_WRONG.get(sig.op, _OTHER).format(*names))
    return shapes.merge(declared, elements.shape)


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
        rest = zeros()
    if element is None:
        # The rest keeps its place.
        is_list = popped.dtype.base_dtype is dtypes.variant
        element = zeros() if is_list else get("ZerosLike")(popped)
    return [tensor_list_push_back_op(rest, element), None]


@tensor_list_resize_op.gradient
def _resize_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None]
    return [tensor_list_resize_op(grad, tensor_list_length_op(op.inputs[0])), None]


@tensor_list_get_item_op.gradient
def _get_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None, None]
    items, dtype = op.inputs[0], grad.dtype.base_dtype
    shape = tensor_list_element_shape_op(items, shape_type=dtypes.int32)
    blank = tensor_list_reserve_op(shape, tensor_list_length_op(items), element_dtype=dtype)
    return [tensor_list_set_item_op(blank, op.inputs[1], grad), None, None]


@tensor_list_set_item_op.gradient
def _set_gradient(op: Operation, grad: Tensor | None) -> list[Any]:
    if grad is None:
        return [None, None, None]
    _, index, item = op.inputs
    full = as_long_as(grad, op.outputs[0])
    dtype = item.dtype.base_dtype
    is_list = dtype is dtypes.variant
    blank = zeros() if is_list else get("ZerosLike")(item)
    shape = _shape_of(item) if is_list else get("Shape")(item)
    element = tensor_list_get_item_op(full, index, shape, element_dtype=dtype)
    element.set_shape(item.raw_shape)
    return [tensor_list_set_item_op(full, index, blank), None, element]


def as_long_as(grad: Tensor, items: Tensor) -> Tensor:
    """The gradient of a list with all elements of the list: one that is too short has zeros."""
    out: Tensor = tensor_list_resize_op(grad, tensor_list_length_op(items))
    return out


def zeros() -> Tensor:
    """The list that stands for zeros, of any type and number."""
    handle: Tensor = empty_tensor_list_op(-1, -1, element_dtype=dtypes.float32, _zeros=True)
    return handle


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


def _shape_of(like: Tensor) -> Tensor:
    from opdock.graph.nodes.convert import convert_to_tensor

    known = like.raw_shape
    shape: Any = -1 if known is None else [-1 if d is None else d for d in known]
    return convert_to_tensor(shape, dtypes.int32)
