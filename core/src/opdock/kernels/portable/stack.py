"""Portable kernels of stacks. A stack is an object of one step; elements are buffers."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

from opdock.dtypes import DType
from opdock.kernels.array_api import invalid
from opdock.kernels.expr.elements import Element, element, unwrap
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_numbers = itertools.count()


class Stack:
    """Elements of one type, last in, first out.

    Args:
        name: for messages.
        dtype: of the elements.
        limit: how many there may be; negative for any number.
    """

    def __init__(self, name: str, dtype: DType, limit: int) -> None:
        self.name, self.dtype, self.limit = name, dtype, limit
        self.closed = False
        self._number = next(_numbers)
        self._elements: list[Element] = []
        self._lock = threading.RLock()

    def read(self) -> Any:
        """What somebody sees who fetches a reference to the stack: where it is, and its name."""
        return np.array([b"_stacks", f"{self.name}_{self._number}".encode()], object)

    def push(self, item: Element) -> None:
        """Puts an element on top."""
        with self._lock:
            if 0 <= self.limit <= len(self._elements):
                raise invalid(f"Stack[{self.name}] overflowed its max_size ({self.limit})")
            self._elements.append(item)

    def pop(self) -> Element:
        """Takes the element on top away."""
        with self._lock:
            if not self._elements:
                raise invalid(f"Stack[{self.name}] is empty when calling Pop().")
            return self._elements.pop()

    def close(self) -> None:
        """Drops the elements; nothing works on the stack from now on."""
        with self._lock:
            self.closed = True
            self._elements.clear()


def _stack(handle: Any, dtype: DType | None = None) -> Stack:
    found = unwrap(handle)
    if not isinstance(found, Stack):
        raise invalid("The handle is not one of a Stack.")
    if found.closed:
        raise invalid(f"Stack[{found.name}] has already been closed.")
    if dtype is not None and found.dtype is not dtype:
        raise invalid(
            f"Must have type {found.dtype.name} but got {dtype.name}: Stack[{found.name}]"
        )
    return found


@portable("Stack", host_outputs=("handle",))
@portable("StackV2", host_inputs=("max_size",), host_outputs=("handle",))
def create(xp: Any, sig: NodeSig) -> Any:
    """A new stack for this step."""
    name, dtype = sig.attrs["stack_name"] or sig.name, sig.attrs["elem_type"].base_dtype
    # The older op has no limit.
    return lambda limit=-1: Stack(name, dtype, int(limit))


@portable("StackPush", host_inputs=("handle",), may_alias={0: 1})
@portable("StackPushV2", host_inputs=("handle",), may_alias={0: 1})
def push(xp: Any, sig: NodeSig) -> Any:
    """Puts a tensor on the stack, and hands it on."""
    dtype = sig.attrs["T"].base_dtype

    def run(handle: Any, value: Any) -> Any:
        _stack(handle, dtype).push(element(value, sig))
        return value

    return run


@portable("StackPop", host_inputs=("handle",))
@portable("StackPopV2", host_inputs=("handle",))
def pop(xp: Any, sig: NodeSig) -> Any:
    """Takes the last tensor off the stack."""
    dtype = sig.attrs["elem_type"].base_dtype
    return lambda handle: _stack(handle, dtype).pop().on(sig.device)


@portable("StackClose", host_inputs=("handle",))
@portable("StackCloseV2", host_inputs=("handle",))
def close(xp: Any, sig: NodeSig) -> Any:
    """Ends the stack."""
    return lambda handle: _stack(handle).close()
