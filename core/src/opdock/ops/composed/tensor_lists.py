"""Functions on lists of tensors: what programs call of TF's `list_ops`."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops import tensor_list as lists
from opdock.ops import tensor_list_rows as rows
from opdock.ops.control import cond

__all__ = [
    "empty_tensor_list", "tensor_list_concat", "tensor_list_from_tensor", "tensor_list_gather",
    "tensor_list_get_item", "tensor_list_pop_back", "tensor_list_reserve", "tensor_list_scatter",
    "tensor_list_set_item", "tensor_list_split", "tensor_list_stack",
]  # fmt: skip


def empty_tensor_list(
    element_shape: Any, element_dtype: Any, max_num_elements: Any = None, name: str | None = None
) -> Tensor:
    """A list without elements.

    Args:
        element_shape: the elements' shape, as far as it is known; None for any.
        element_dtype: the elements' type.
        max_num_elements: how many elements it may have; None for any number.
        name: a name for the operation.
    """
    limit = -1 if max_num_elements is None else max_num_elements
    out: Tensor = lists.empty_tensor_list_op(
        _build_element_shape(element_shape), limit, element_dtype=element_dtype, name=name
    )
    return out


def tensor_list_reserve(
    element_shape: Any, num_elements: Any, element_dtype: Any, name: str | None = None
) -> Tensor:
    """A list of so many elements, which are zeros until they are written."""
    out: Tensor = lists.tensor_list_reserve_op(
        _build_element_shape(element_shape), num_elements, element_dtype=element_dtype, name=name
    )
    return out


def tensor_list_from_tensor(tensor: Any, element_shape: Any, name: str | None = None) -> Tensor:
    """A list of the rows of a tensor."""
    out: Tensor = rows.tensor_list_from_tensor_op(
        tensor, _build_element_shape(element_shape), name=name
    )
    return out


def tensor_list_get_item(
    input_handle: Any, index: Any, element_dtype: Any, element_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """One element; zeros if it was not written.

    Raises:
        InvalidArgumentError: when it runs: there is no such element.
    """
    out: Tensor = lists.tensor_list_get_item_op(
        input_handle, index, _build_element_shape(element_shape), element_dtype=element_dtype,
        name=name,
    )  # fmt: skip
    return out


def tensor_list_pop_back(
    input_handle: Any, element_dtype: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(the list without its last element, that element)."""
    out: tuple[Tensor, Tensor] = lists.tensor_list_pop_back_op(
        input_handle, -1, element_dtype=element_dtype, name=name
    )
    return out


def tensor_list_gather(
    input_handle: Any, indices: Any, element_dtype: Any, element_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The elements at some places as one tensor."""
    out: Tensor = rows.tensor_list_gather_op(
        input_handle, indices, _build_element_shape(element_shape), element_dtype=element_dtype,
        name=name,
    )  # fmt: skip
    return out


def tensor_list_scatter(
    tensor: Any, indices: Any, element_shape: Any = None, input_handle: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A list that has the rows of a tensor at these places.

    Args:
        tensor: the rows.
        indices: a place for each.
        element_shape: the elements' shape, as far as it is known; None for any.
        input_handle: a list whose other elements the result has too.
        name: a name for the operation.
    """
    if input_handle is not None:
        return rows.tensor_list_scatter_into_op(input_handle, tensor, indices, name=name)
    return rows.tensor_list_scatter_v2_op(
        tensor, indices, _build_element_shape(element_shape), -1, name=name
    )


def tensor_list_stack(
    input_handle: Any, element_dtype: Any, num_elements: int = -1, element_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """All elements as one tensor.

    Raises:
        InvalidArgumentError: when it runs: the elements differ in shape, or are not
            `num_elements`.
    """
    out: Tensor = rows.tensor_list_stack_op(
        input_handle, _build_element_shape(element_shape), element_dtype=element_dtype,
        num_elements=-1 if num_elements is None else num_elements, name=name,
    )  # fmt: skip
    return out


def tensor_list_concat(
    input_handle: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Tensor:
    """The elements one after the other along their first dimension."""
    none = convert_to_tensor([], dtypes.int64)
    whole: tuple[Tensor, Tensor] = rows.tensor_list_concat_op(
        input_handle, _build_element_shape(element_shape), none, element_dtype=element_dtype,
        name=name,
    )  # fmt: skip
    return whole[0]


def tensor_list_split(
    tensor: Any, element_shape: Any, lengths: Any, name: str | None = None
) -> Tensor:
    """A list of consecutive rows of a tensor, so many for each element."""
    out: Tensor = rows.tensor_list_split_op(
        tensor, _build_element_shape(element_shape), lengths, name=name
    )
    return out


def tensor_list_set_item(
    input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The list with another element at one place.

    Args:
        input_handle: the list.
        index: the place.
        item: the element.
        resize_if_index_out_of_bounds: whether a place behind the end makes the list longer.
        name: a name for the operation.
    """
    if resize_if_index_out_of_bounds:
        given, size = input_handle, lists.tensor_list_length_op(input_handle)
        input_handle = cond(
            index >= size,
            lambda: lists.tensor_list_resize_op(given, index + 1),
            lambda: given,
        )
    out: Tensor = lists.tensor_list_set_item_op(input_handle, index, item, name=name)
    return out


def _build_element_shape(shape: Any) -> Any:
    """A shape as the ops take it: -1 for what is unknown."""
    if isinstance(shape, Tensor):
        return shape
    if isinstance(shape, shapes.TensorShape):
        shape = shape.raw
    if shape is None:
        return -1
    dims = [getattr(d, "value", d) if not isinstance(d, Tensor) else d for d in shape]
    if not dims:
        return convert_to_tensor([], dtypes.int32)
    return [-1 if d is None else d for d in dims]
