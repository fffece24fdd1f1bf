"""What rewritten code calls for lists and items, where the feature LISTS is on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.ops.array import shape
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.composed.tensor_lists import (
    empty_tensor_list,
    tensor_list_from_tensor,
    tensor_list_get_item,
    tensor_list_pop_back,
    tensor_list_set_item,
    tensor_list_stack,
)
from opdock.ops.control import cond
from opdock.ops.scatter import tensor_scatter_update
from opdock.ops.strings import substr
from opdock.ops.tensor_list import tensor_list_length_op, tensor_list_push_back_op

__all__ = [
    "GetItemOpts", "ListPopOpts", "ListStackOpts", "get_item", "list_append", "list_pop",
    "list_stack", "match_staging_level", "new_list", "set_item", "stack", "tensor_list",
    "update_item_with_op",
]  # fmt: skip


class GetItemOpts(NamedTuple):
    """What is said of the list that an item is taken from."""

    element_dtype: Any


class ListPopOpts(NamedTuple):
    """What is said of the list whose last element is taken away."""

    element_dtype: Any
    element_shape: Any


class ListStackOpts(NamedTuple):
    """What is said of the list that is stacked, and what stacks other values."""

    element_dtype: Any
    original_call: Callable[..., Any]


def _is_list(value: Any) -> bool:
    """Whether a tensor is a list of tensors.

    Raises:
        ValueError: it is a tensor of another kind.
    """
    if not is_tensor(value):
        return False
    if value.dtype.base_dtype is not dtypes.variant:
        raise ValueError(
            f"tensor lists are expected to be Tensors with dtype=tf.variant, instead found {value}"
        )
    return True


def new_list(iterable: Iterable[Any] | None = None) -> Any:
    """A list: of tensors, if it is empty, to which a loop in the graph can append."""
    elements = list(iterable or ())
    return elements or empty_tensor_list(None, dtypes.variant)


def list_append(list_: Any, x: Any) -> Any:
    """The list with one more element."""
    if isinstance(list_, TensorArray):
        return list_.write(list_.size(), x)
    if not _is_list(list_):
        list_.append(x)
        return list_
    element = convert_to_tensor(x)
    # The first element says what elements are.
    begun = cond(
        tensor_list_length_op(list_) > 0,
        lambda: list_,
        lambda: empty_tensor_list(shape(element), element.dtype),
    )
    return tensor_list_push_back_op(begun, element)


def list_pop(list_: Any, i: Any, opts: ListPopOpts) -> tuple[Any, Any]:
    """The list without an element, the last by default, and that element.

    Raises:
        ValueError: it is an array, or nothing is said of the elements.
        NotImplementedError: it is a list of tensors, and not its last element is meant.
    """
    if isinstance(list_, TensorArray):
        raise ValueError("TensorArray does not support item removal")
    if not _is_list(list_):
        element = list_.pop() if i is None else list_.pop(i)
        return list_, element
    if i is not None:
        raise NotImplementedError("tensor lists only support removing from the end")
    for what, given in zip(("type", "shape"), opts, strict=True):
        if given is None:
            raise ValueError(
                f"cannot pop from a list without knowing its element {what}; use "
                "set_element_type to annotate it"
            )
    rest, element = tensor_list_pop_back(list_, opts.element_dtype)
    element.set_shape(opts.element_shape)
    return rest, element


def list_stack(list_: Any, opts: ListStackOpts) -> Any:
    """The elements of a list as the rows of a tensor.

    Raises:
        ValueError: it is a list of tensors whose type nobody said.
    """
    if isinstance(list_, TensorArray):
        return list_.stack()
    if not is_tensor(list_):
        return opts.original_call(list_)
    if list_.dtype.base_dtype is not dtypes.variant:
        return list_
    if opts.element_dtype is None:
        raise ValueError(
            "cannot stack a list without knowing its element type; use set_element_type to "
            "annotate it"
        )
    return tensor_list_stack(list_, opts.element_dtype)


def get_item(target: Any, i: Any, opts: GetItemOpts) -> Any:
    """`target[i]`.

    Raises:
        ValueError: it is a list of tensors whose type nobody said.
    """
    if isinstance(target, TensorArray):
        return target.read(i)
    if not is_tensor(target):
        return target[i]
    if target.dtype.base_dtype is dtypes.variant:
        if opts.element_dtype is None:
            raise ValueError(
                "cannot retrieve from a list without knowing its element type; use "
                "set_element_type to annotate it"
            )
        return tensor_list_get_item(target, i, opts.element_dtype)
    if target.dtype.base_dtype is dtypes.string and target.shape.raw == ():
        return substr(target, i, 1)
    return target[i]


def set_item(target: Any, i: Any, x: Any) -> Any:
    """What `target` is after `target[i] = x`."""
    if isinstance(target, TensorArray):
        return target.write(i, x)
    if not is_tensor(target):
        target[i] = x
        return target
    if target.dtype.base_dtype is dtypes.variant:
        return tensor_list_set_item(target, i, x)
    return tensor_scatter_update(target, ((i,),), (x,))


_UPDATES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add, "sub": operator.sub, "mult": operator.mul, "div": operator.truediv,
    "pow": operator.pow,
}  # fmt: skip


def update_item_with_op(target: Any, i: Any, x: Any, op: str) -> Any:
    """What `target` is after `target[i] += x` or its like."""
    return set_item(target, i, _UPDATES[op](target[i], x))


# ---------------------------------------------------------------- what programs call
def tensor_list(
    elements: Any, element_dtype: Any = None, element_shape: Any = None,
    use_tensor_array: bool = False,
) -> Any:  # fmt: skip
    """A list of tensors, or an array of them.

    Args:
        elements: the first elements: a list, or a tensor of which they are the rows.
        element_dtype, element_shape: what elements are; needed where there are none.
        use_tensor_array: whether it is a `tf.TensorArray`.

    Raises:
        ValueError: the elements are no list, or not alike, or not those that are said.
    """
    if is_tensor(elements) and not use_tensor_array:
        if element_shape is not None:
            raise ValueError("element shape may not be specified when creating list from tensor")
        return tensor_list_from_tensor(elements, shape(elements)[1:])
    if not isinstance(elements, (list, tuple)) and not is_tensor(elements):
        raise ValueError(
            f"unknown type for elements: {type(elements)}; only Tensor, list and tuple are allowed"
        )
    if not is_tensor(elements) and not elements and None in (element_dtype, element_shape):
        raise ValueError("element_dtype and element_shape are required when elements are empty")
    tensors = [convert_to_tensor(e) for e in elements]
    dtype, known = _common(tensors, element_dtype, element_shape)
    if use_tensor_array:
        made = TensorArray(dtype, len(tensors), dynamic_size=True, element_shape=known)
        for i, tensor in enumerate(tensors):
            made = made.write(i, tensor)
        return made
    found = empty_tensor_list(known, dtype)
    for tensor in tensors:
        found = tensor_list_push_back_op(found, tensor)
    return found


def _common(tensors: list[Tensor], dtype: Any, element_shape: Any) -> tuple[Any, Any]:
    """The type and shape of the elements.

    Raises:
        ValueError: they differ, or are not those that are said.
    """
    for what, found, said in (
        ("dtype", {t.dtype.base_dtype for t in tensors}, dtype),
        ("shape", {t.raw_shape for t in tensors}, element_shape),
    ):
        if len(found) > 1:
            raise ValueError(f"a list requires all elements to have the same {what}: {tensors}")
        if found and said is not None and {said} != found:
            raise ValueError(
                f"incompatible {what}; specified: {said}, inferred from {tensors}: {found.pop()}"
            )
    if tensors:
        return tensors[0].dtype.base_dtype, tensors[0].shape
    return dtype, element_shape


def stack(list_or_tensor: Any, element_dtype: Any = None, strict: bool = True) -> Any:
    """The elements of a list of tensors as the rows of a tensor.

    Args:
        list_or_tensor: the list.
        element_dtype: the elements' type, which a list of tensors does not say.
        strict: whether other values are refused; otherwise they are left as they are.

    Raises:
        ValueError: it can't be stacked.
    """

    def other(value: Any) -> Any:
        if strict:
            raise ValueError(f"{value} must be stackable when strict=True")
        return value

    return list_stack(list_or_tensor, ListStackOpts(element_dtype, other))


def match_staging_level(value: Any, like_value: Any) -> Any:
    """A value as a tensor, if another one is a tensor."""
    return convert_to_tensor(value) if is_tensor(like_value) else value
