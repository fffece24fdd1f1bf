"""Portable kernels of tensor lists: linked cells, shared and never changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.kernels.array_api import invalid
from opdock.kernels.elements import Element, element, unwrap
from opdock.kernels.portable import portable
from opdock.kernels.signature import NodeSig


class ListCell:
    """The end of a list: its last element, and the list before it."""

    __slots__ = ("last", "length", "rest")

    def __init__(self, last: Element | None, rest: ListCell | None, length: int) -> None:
        self.last = last
        self.rest = rest
        self.length = length


EMPTY = ListCell(None, None, 0)


@portable(
    "EmptyTensorList",
    host_inputs=("element_shape", "max_num_elements"),
    host_outputs=("handle",),
)
def empty(xp: Any, sig: NodeSig) -> Any:
    """The empty list."""
    return lambda shape, limit: EMPTY


@portable("TensorListPushBack", host_inputs=("input_handle",), host_outputs=("output_handle",))
def push(xp: Any, sig: NodeSig) -> Any:
    """One more cell."""

    def run(handle: Any, tensor: Any) -> ListCell:
        cell = unwrap(handle)
        return ListCell(element(unwrap(tensor), sig), cell, cell.length + 1)

    return run


@portable(
    "TensorListPopBack",
    host_inputs=("input_handle", "element_shape"),
    host_outputs=("output_handle",),
)
def pop(xp: Any, sig: NodeSig) -> Any:
    """The cell before, and the element."""

    def run(handle: Any, shape: Any) -> Any:
        cell = unwrap(handle)
        if cell.last is None:
            raise invalid("Trying to pop from an empty list.")
        return cell.rest, cell.last.on(sig.device)

    return run


@portable("TensorListLength", host_inputs=("input_handle",), host_outputs=("length",))
def length(xp: Any, sig: NodeSig) -> Any:
    """The number of elements."""
    return lambda handle: np.array(unwrap(handle).length, np.int32)
