"""Portable kernels of tensor lists: linked cells, shared and never changed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.elements import Element, element, join, take_rows, unwrap, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


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
    """The cell before, and the element; of a list that stands for zeros, zeros."""
    dtype, stands_for_zeros = sig.out_dtypes[1], sig.attrs.get("_zeros", False)

    def run(handle: Any, shape: Any) -> Any:
        cell = unwrap(handle)
        if cell.last is None and stands_for_zeros:
            zero = EMPTY if dtype is dtypes.variant else zeros(sig, tuple(ints(shape)), dtype)
            return EMPTY, zero
        if cell.last is None:
            raise invalid("Trying to pop from an empty list.")
        return cell.rest, cell.last.on(sig.device)

    return run


@portable(
    "TensorListConcatV2",
    host_inputs=("input_handle", "element_shape", "leading_dims"),
    host_outputs=("lengths",),
)
def concat(xp: Any, sig: NodeSig) -> Any:
    """The elements one after the other; of an empty list, zeros of the given lengths."""
    dtype = sig.out_dtypes[0]

    def run(handle: Any, shape: Any, leading_dims: Any) -> Any:
        cell = unwrap(handle)
        parts = [e.on(sig.device) for e in _elements(cell)][::-1]
        if not parts:
            rest = np.atleast_1d(shape)[1:].tolist()
            if np.ndim(shape) == 0 or min(rest, default=0) < 0:
                raise invalid(
                    "All except the first dimension must be fully defined when concating an empty "
                    f"tensor list. element_shape: {np.asarray(shape).tolist()}"
                )
            return zeros(sig, (int(np.sum(leading_dims)), *rest), dtype), leading_dims
        if not all(np.shape(p) for p in parts):
            raise invalid("Concat saw a scalar shape, but requires at least vectors.")
        lengths = np.array([np.shape(p)[0] for p in parts], np.int64)
        return join(xp, xp.concat, parts, dtype), lengths

    return run


@portable(
    "TensorListSplit",
    host_inputs=("element_shape", "lengths"),
    host_outputs=("output_handle",),
)
def split(xp: Any, sig: NodeSig) -> Any:
    """A list of consecutive rows."""

    def run(tensor: Any, shape: Any, lengths: Any) -> ListCell:
        counts, start, out = ints(lengths), 0, EMPTY
        if sum(counts) != np.shape(tensor)[0]:
            raise invalid(
                f"Expected sum of lengths to be equal to the number of rows, but sum of lengths is "
                f"{sum(counts)} and the tensor's shape is: {dims(np.shape(tensor))}"
            )
        for count in counts:
            part = take_rows(xp, tensor, start, start + count)
            out = ListCell(element(part, sig), out, out.length + 1)
            start += count
        return out

    return run


@portable("TensorListLength", host_inputs=("input_handle",), host_outputs=("length",))
def length(xp: Any, sig: NodeSig) -> Any:
    """The number of elements."""
    return lambda handle: np.array(unwrap(handle).length, np.int32)


@portable("AddN", T=frozenset({dtypes.variant}), host_inputs=("inputs",), host_outputs=("sum",))
def add(xp: Any, sig: NodeSig) -> Any:
    """The sums element by element from the end; what a list lacks stands for zeros."""
    return lambda *handles: functools.reduce(
        lambda a, b: _sum(xp, sig, a, b), [unwrap(h) for h in handles]
    )


def _sum(xp: Any, sig: NodeSig, a: ListCell, b: ListCell) -> ListCell:
    totals = []
    while a.last is not None and b.last is not None:
        x, y = a.last, b.last
        if isinstance(x.value, ListCell):
            totals.append(_sum(xp, sig, x.value, y.value))
        else:
            totals.append(xp.add(x.on(sig.device), y.on(sig.device)))
        a, b = a.rest or EMPTY, b.rest or EMPTY
    out = a if a.length else b
    for total in reversed(totals):
        out = ListCell(element(total, sig), out, out.length + 1)
    return out


def _elements(cell: ListCell) -> Iterator[Element]:
    """The elements from the end."""
    while cell.last is not None and cell.rest is not None:
        yield cell.last
        cell = cell.rest
