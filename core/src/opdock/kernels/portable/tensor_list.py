"""Portable kernels of tensor lists: single elements and whole lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.elements import element, unwrap, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.tensor_lists import (
    NOTHING,
    TensorList,
    check_fits,
    complete,
    element_shape,
    list_of,
    merged,
    pushed,
    shape_from,
)


# ---------------------------------------------------------------- lists from nothing
@portable(
    "EmptyTensorList",
    host_inputs=("element_shape", "max_num_elements"),
    host_outputs=("handle",),
)
def empty(xp: Any, sig: NodeSig) -> Any:
    """The empty list."""
    dtype, stands_for_zeros = sig.attrs["element_dtype"].base_dtype, sig.attrs.get("_zeros", False)

    def run(shape: Any, limit: Any) -> TensorList:
        if stands_for_zeros:
            return NOTHING
        if np.ndim(limit):
            raise invalid(
                f"max_num_elements expected to be a scalar but got shape: {dims(np.shape(limit))}"
            )
        return TensorList(dtype, shape_from(shape), limit=int(limit))

    return run


@portable(
    "TensorListReserve",
    host_inputs=("element_shape", "num_elements"),
    host_outputs=("handle",),
)
def reserve(xp: Any, sig: NodeSig) -> Any:
    """A list of elements that are written later."""
    dtype = sig.attrs["element_dtype"].base_dtype

    def run(shape: Any, count: Any) -> TensorList:
        if int(count) < 0:
            raise invalid(f"The num_elements to reserve must be non negative, got {int(count)}")
        return TensorList(dtype, shape_from(shape), [None] * int(count))

    return run


@portable("TensorListLength", host_inputs=("input_handle",), host_outputs=("length",))
def length(xp: Any, sig: NodeSig) -> Any:
    """The number of elements."""
    return lambda handle: np.array(len(list_of(handle, None)), np.int32)


@portable("TensorListElementShape", host_inputs=("input_handle",), host_outputs=("element_shape",))
def shape_of_elements(xp: Any, sig: NodeSig) -> Any:
    """What the list promises of its elements' shape, -1 for what it does not."""
    dtype = sig.attrs["shape_type"].np

    def run(handle: Any) -> Any:
        known = list_of(handle, None).known
        return np.array(-1 if known is None else [-1 if d is None else d for d in known], dtype)

    return run


@portable("TensorListResize", host_inputs=("input_handle", "size"), host_outputs=("output_handle",))
def resize(xp: Any, sig: NodeSig) -> Any:
    """Longer or shorter at the end."""

    def run(handle: Any, size: Any) -> TensorList:
        if int(size) < 0:
            raise invalid(f"TensorListSlice expects size to be non-negative. Got: {int(size)}")
        return list_of(handle, None).resized(int(size))

    return run


# ---------------------------------------------------------------- one element
@portable("TensorListPushBack", host_inputs=("input_handle",), host_outputs=("output_handle",))
def push(xp: Any, sig: NodeSig) -> Any:
    """One more element at the end."""
    dtype = sig.attrs["element_dtype"].base_dtype
    return lambda handle, tensor: pushed(list_of(handle, dtype), element(unwrap(tensor), sig))


@portable(
    "TensorListPopBack",
    host_inputs=("input_handle", "element_shape"),
    host_outputs=("output_handle",),
)
def pop(xp: Any, sig: NodeSig) -> Any:
    """The list without its last element, and the element; zeros of the list of zeros."""
    dtype, stands_for_zeros = sig.out_dtypes[1], sig.attrs.get("_zeros", False)

    def run(handle: Any, shape: Any) -> Any:
        items = list_of(handle, dtype)
        if items.length == 0:
            if stands_for_zeros or items is NOTHING:
                return NOTHING, _unwritten(sig, tuple(ints(shape)), dtype)
            raise invalid("Trying to pop from an empty list.")
        if items.last is not None:
            return items.rest, items.last.on(sig.device)
        wanted = complete(
            merged(shape_from(shape), items.known),
            "Trying to read an uninitialized tensor but element_shape is not fully defined.",
        )
        return items.rest, _unwritten(sig, wanted, dtype)

    return run


def _unwritten(sig: NodeSig, shape: tuple[int, ...], dtype: DType) -> Any:
    return NOTHING if dtype is dtypes.variant else zeros(sig, shape, dtype)


@portable(
    "TensorListSetItem",
    host_inputs=("input_handle", "index"),
    host_outputs=("output_handle",),
)
def set_item(xp: Any, sig: NodeSig) -> Any:
    """Another element at one place."""
    dtype = sig.attrs["element_dtype"].base_dtype

    def run(handle: Any, index: Any, value: Any) -> TensorList:
        items, at = list_of(handle, dtype), int(index)
        if not 0 <= at < len(items):
            raise invalid(f"Trying to modify element {at} in a list with {len(items)} elements.")
        item = element(unwrap(value), sig)
        check_fits(
            items, tuple(np.shape(item.value)),
            "set a tensor with incompatible shape at a list index", "Item element",
        )  # fmt: skip
        return items.having((*items.items[:at], item, *items.items[at + 1 :]))

    return run


@portable("TensorListGetItem", host_inputs=("input_handle", "index", "element_shape"))
def get_item(xp: Any, sig: NodeSig) -> Any:
    """One element; zeros if it was not written."""
    dtype = sig.out_dtypes[0]

    def run(handle: Any, index: Any, shape: Any) -> Any:
        items, at = list_of(handle, dtype), int(index)
        if not 0 <= at < len(items):
            raise invalid(f"Trying to access element {at} in a list with {len(items)} elements.")
        found = items.items[at]
        if found is not None:
            return found.on(sig.device)
        known = merged(shape_from(shape), items.known)
        if not shapes.is_fully_defined(known):
            known = element_shape(known, items.items)
        if not shapes.is_fully_defined(known):
            raise invalid(
                "Trying to read an uninitialized tensor but element_shape is not fully defined: "
                f"{shapes.text(known)} and no list element is set."
            )
        return _unwritten(sig, complete(known, ""), dtype)

    return run
