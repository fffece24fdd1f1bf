"""Lists of tensors as values, and what is checked of them.

A list is never changed: what writes one makes another that shares the elements. Pushing and
popping share the rest of the list as well, so that what loops record costs one cell an element;
a list that is read or written by index has its elements in a tuple from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import shapes
from opdock.dtypes import DType
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.elements import Element, unwrap
from opdock.shapes import Shape

Item = Element | None
"""An element, or None where a list was reserved and nothing was written yet."""


class TensorList:
    """A list: its last element and the list before it, or a tuple of all elements.

    In the place of the last element may be several, the rows of an array.

    Attributes:
        dtype: the elements' type; None for the list of zeros, which fits any.
        known: the elements' shape, as far as the list promises it.
        limit: how many elements it may have; -1 for any number.
    """

    __slots__ = ("_items", "_last", "_rest", "_rows", "dtype", "known", "length", "limit")

    def __init__(
        self, dtype: DType | None, known: Shape, items: Sequence[Item] = (), limit: int = -1
    ) -> None:
        self.dtype, self.known, self.limit = dtype, known, limit
        self._items: tuple[Item, ...] | None = tuple(items)
        self.length = len(self._items)
        self._last: Item = None
        self._rows: Element | None = None
        self._rest: TensorList | None = None

    def __len__(self) -> int:
        return self.length

    def __str__(self) -> str:
        return "TensorList"

    def push(self, item: Item) -> TensorList:
        """The list with one more element at its end."""
        return self._longer(item, None, 1)

    def _longer(self, item: Item, rows: Element | None, count: int) -> TensorList:
        out = TensorList.__new__(TensorList)
        out.dtype, out.known, out.limit = self.dtype, self.known, self.limit
        out._items, out._last, out._rows, out._rest = None, item, rows, self
        out.length = self.length + count
        return out

    def push_rows(self, rows: Any, device: Any) -> TensorList:
        """The list with the rows of a host array at its end."""
        return self._longer(None, Element(rows, device), len(rows)) if len(rows) else self

    def last_rows(self, most: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Some of the last elements, at most so many, as rows of one host array.

        None if there are none, or none of this type and shape in host memory.
        """
        if self._rows is not None:
            rows = self._rows.value[-most:, ...]
            return rows if rows.dtype == dtype and rows.shape[1:] == shape else None
        found: list[Any] = []
        cell: TensorList | None = self
        while cell is not None and cell._last is not None and len(found) < most:
            value = cell._last.value
            host = isinstance(value, (np.ndarray, np.generic))
            if not host or value.dtype != dtype or value.shape != shape:
                break
            found.append(value)
            cell = cell._rest
        return np.array(found[::-1], dtype) if found else None

    def without(self, count: int) -> TensorList:
        """The list without so many of its last elements, which `last_rows` gave."""
        if self._rows is not None:
            assert self._rest is not None
            rows, device = self._rows
            return self._rest.push_rows(rows[: len(rows) - count], device)
        rest = self
        for _ in range(count):
            rest = rest.rest
        return rest

    @property
    def last(self) -> Item:
        """The last element of a list that has some."""
        if self._items is not None:
            return self._items[-1]
        if self._rows is not None:
            return Element(self._rows.value[-1, ...], self._rows.device)
        return self._last

    @property
    def rest(self) -> TensorList:
        """The list without its last element."""
        if self._rest is not None:
            return self._rest if self._rows is None else self.without(1)
        return self.having(self.items[:-1])

    @property
    def items(self) -> tuple[Item, ...]:
        """All elements, from the first to the last."""
        found, cell = [], self
        while cell._items is None and cell._rest is not None:
            if cell._rows is None:
                found.append(cell._last)
            else:
                rows, device = cell._rows
                found += [Element(rows[i, ...], device) for i in reversed(range(len(rows)))]
            cell = cell._rest
        if found:
            self._items = (*(cell._items or ()), *reversed(found))
        return self._items or ()

    def having(self, items: Sequence[Item]) -> TensorList:
        """A list of the same kind with other elements."""
        return TensorList(self.dtype, self.known, items, self.limit)

    def resized(self, size: int) -> TensorList:
        """The first elements, followed by as many that were not written as `size` asks for."""
        return self.having((*self.items[:size], *[None] * (size - self.length)))


NOTHING: Final = TensorList(None, None)
"""The list that stands for zeros, of whatever type and number."""


def list_of(handle: Any, dtype: DType | None) -> TensorList:
    """The list behind a kernel's argument.

    Args:
        handle: the argument.
        dtype: the type of elements that the op expects; None if it takes any.

    Raises:
        InvalidArgumentError: it is no list, or one of another type.
    """
    found = unwrap(handle)
    if isinstance(found, np.ndarray):
        if found.ndim:
            raise invalid(f"Input list must be a scalar saw: {dims(found.shape)}")
        found = unwrap(found.item())
    if not isinstance(found, TensorList):
        raise invalid(f"Input handle is not a list. Saw: '{found}'")
    if dtype is not None and found.dtype is not None and found.dtype is not dtype:
        raise invalid(
            f"Invalid data types; op elements {dtype.name} but list elements {found.dtype.name}"
        )
    return found


def shape_from(value: Any) -> Shape:
    """The partial shape that an argument `element_shape` means.

    Raises:
        InvalidArgumentError: a scalar other than -1, or a dimension below -1.
    """
    found = ints(value)
    if np.ndim(value) == 0:
        if found != [-1]:
            raise invalid(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return None
    if any(d < -1 for d in found):
        raise invalid(f"Dimension {min(found)} must be >= -1")
    return tuple(None if d < 0 else d for d in found)


def merged(a: Shape, b: Shape) -> Shape:
    """The shape that both agree on.

    Raises:
        InvalidArgumentError: they do not.
    """
    if a is not None and b is not None and len(a) != len(b):
        raise invalid(f"Incompatible ranks during merge: {len(a)} vs. {len(b)}")
    if not shapes.is_compatible(a, b):
        raise invalid(f"Incompatible shapes during merge: {shapes.text(a)} vs. {shapes.text(b)}")
    return shapes.merge(a, b)


def element_shape(known: Shape, items: Sequence[Item]) -> Shape:
    """What is known of the shape of elements that all have the same."""
    for item in items:
        if item is not None:
            known = merged(known, tuple(np.shape(item.value)))
    return known


def complete(shape: Shape, message: str) -> tuple[int, ...]:
    """A shape without open dimensions; InvalidArgumentError with the message if it has some."""
    if shape is None or None in shape:
        raise invalid(f"{message}{shapes.text(shape)}")
    return tuple(d for d in shape if d is not None)


def check_fits(items: TensorList, shape: tuple[int, ...], doing: str, own: str) -> None:
    """Raises InvalidArgumentError if an element of this shape does not belong into the list."""
    if not shapes.is_compatible(items.known, shape):
        raise invalid(
            f"Tried to {doing}. {own} shape: {dims(shape)} list shape: {shapes.text(items.known)}"
        )


def pushed(items: TensorList, item: Element, where: str = "") -> TensorList:
    """The list with one more element at its end; `where` says which of several it is.

    Raises:
        InvalidArgumentError: the list is full, or is one of elements of another shape.
    """
    check_fits(
        items, tuple(np.shape(item.value)),
        f"append a tensor with incompatible shape to a list{where}", "Op element",
    )  # fmt: skip
    if items.limit != -1 and len(items) >= items.limit:
        raise invalid(
            f"Tried to push item into a full list list size: {len(items)} "
            f"max_num_elements: {items.limit}"
        )
    return items.push(item)
