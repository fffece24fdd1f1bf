"""Tensor lists in a trace: what loops record for their gradients, as arrays of known capacity.

Tracers have no lists, but a loop whose number of turns is known pushes a known number of elements.
So a list is an array of rows, and how many of them count: a number, or in a loop one that follows
from the number of the turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.devices.segment import SegmentNode
from opdock.devices.tracing.deferred import defer

__all__ = ["LIST_OPS", "Rows", "gives_list", "row", "with_row"]


@dataclass(frozen=True)
class Rows:
    """A list of arrays of one shape, or of lists of those.

    Attributes:
        xp: the namespace.
        array: the elements along the first dimension, and room for more; None before the first.
        length: how many there are, apart from `base`.
        base: an array, how many came in earlier turns of the loop that is traced, or from the
            branch that was taken.
        unsure: whether there may be none where one is taken.
        counts: of a list of lists how long each of them is, an array; None where they are arrays.
    """

    xp: Any
    array: Any = None
    length: int = 0
    base: Any = None
    unsure: bool = False
    counts: Any = None

    def push(self, element: Any) -> Rows:
        """One more element.

        Raises:
            NotImplementedError: it is a list whose elements nobody knows.
        """
        counts = None
        if isinstance(element, Rows):
            if element.array is None or element.counts is not None:
                raise NotImplementedError("the elements of the list are lists without a shape")
            counts = self._pushed(self.counts, element.count())
            element = element.array
        rows = self._pushed(self.array, element)
        return replace(self, array=rows, counts=counts, length=self.length + 1)

    def _pushed(self, array: Any, element: Any) -> Any:
        xp = self.xp
        if self.base is not None:
            return with_row(xp, array, self.base + self.length, element)
        if array is None:
            return element[None]
        if self.length < array.shape[0]:
            return with_row(xp, array, self.length, element)
        return xp.concat([array, element[None]])

    def count(self) -> Any:
        """How many there are, as an array."""
        count = self.xp.asarray(self.length, dtype=self.xp.int64)
        return count if self.base is None else count + self.base

    def pop(self) -> tuple[Rows, Any]:
        """Without the last element, and that element.

        Raises:
            NotImplementedError: there may be none.
        """
        last = self.length - 1
        if self.base is None and last < 0:
            raise NotImplementedError("the list may be empty")
        at = last if self.base is None else self.base + last
        if self.unsure:
            defer(self.xp, at < 0)
        element = row(self.xp, self.array, at)
        if self.counts is not None:
            element = Rows(self.xp, element, 0, row(self.xp, self.counts, at), unsure=True)
        return replace(self, length=last), element

    def all(self) -> Any:
        """The elements that count.

        Raises:
            NotImplementedError: nobody knows how many.
        """
        if self.base is not None or self.array is None or self.counts is not None:
            raise NotImplementedError("the length of the list is not known")
        return self.array[: self.length]

    def counted(self, rows: int, like: Rows) -> Rows:
        """With room for so many, and a length that is an array."""
        return replace(self.with_room(rows, like), length=0, base=self.count(), unsure=True)

    def with_room(self, rows: int, like: Rows) -> Rows:
        """With room for so many, of the shape and type of those of `like`."""
        array = self._roomy(self.array, rows, like.array)
        return replace(self, array=array, counts=self._roomy(self.counts, rows, like.counts))

    def _roomy(self, array: Any, rows: int, like: Any) -> Any:
        if like is None:
            return array
        have = 0 if array is None else array.shape[0]
        more = self.xp.zeros((max(0, rows - have), *like.shape[1:]), dtype=like.dtype)
        return more if array is None else self.xp.concat([array, more])

    def arrays(self) -> list[Any]:
        """What of it is arrays of a fixed shape."""
        return [x for x in (self.array, self.counts) if x is not None]

    def with_arrays(self, rest: Iterator[Any]) -> Rows:
        """With the next of other arrays in place of its own."""
        array = None if self.array is None else next(rest)
        return replace(self, array=array, counts=None if self.counts is None else next(rest))


def row(xp: Any, array: Any, i: Any) -> Any:
    """A row, whose place may be traced."""
    shape = array.shape[1:]
    return xp.reshape(xp.part(array, [i, *(0 for _ in shape)], (1, *shape)), shape)


def with_row(xp: Any, array: Any, i: Any, new: Any) -> Any:
    """An array with another row."""
    return xp.set_part(array, [i, *(0 for _ in new.shape)], new[None])


def _pop(xp: Any, node: SegmentNode, items: Rows, shape: Any) -> tuple[Rows, Any]:
    if items.unsure and node.attrs.get("_zeros"):
        raise NotImplementedError("whether the list is empty depends on values")
    if items.base is None and items.length == 0 and node.attrs.get("_zeros"):
        return items, xp.zeros(tuple(map(int, shape)), dtype=node.results[1].dtype.np)
    return items.pop()


def _concat(xp: Any, node: SegmentNode, items: Rows, shape: Any, leading: Any) -> tuple[Any, Any]:
    if items.base is None and items.length == 0:
        size = (int(np.sum(leading)), *map(int, np.atleast_1d(shape)[1:]))
        return xp.zeros(size, dtype=node.results[0].dtype.np), leading
    rows = items.all()
    count, first, *rest = rows.shape
    joined = xp.reshape(rows, (count * first, *rest))
    return joined, np.full(items.length, first, np.int64)


def _split(xp: Any, node: SegmentNode, tensor: Any, shape: Any, lengths: Any) -> Rows:
    sizes = set(np.asarray(lengths).tolist())
    if len(sizes) != 1:
        raise NotImplementedError("the elements of the list differ in shape")
    rows = xp.reshape(tensor, (len(lengths), *sizes, *tensor.shape[1:]))
    return Rows(xp, rows, len(lengths))


def _add(xp: Any, node: SegmentNode, *lists: Rows) -> Rows:
    if any(x.counts is not None for x in lists):
        raise NotImplementedError("lists of lists are added")
    found = [x for x in lists if x.array is not None and (x.base is not None or x.length)]
    if not found:
        return lists[0]
    if any(x.length != found[0].length or x.base is not found[0].base for x in found):
        raise NotImplementedError("the lists that are added differ in length")
    arrays = [x.array for x in found]
    if len({x.shape for x in arrays}) > 1:
        raise NotImplementedError("the lists that are added differ in capacity")
    return replace(found[0], array=functools.reduce(xp.add, arrays))


LIST_OPS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({
    "EmptyTensorList": lambda xp, node, shape, limit: Rows(xp),
    "TensorListPushBack": lambda xp, node, items, element: items.push(element),
    "TensorListPopBack": _pop,
    "TensorListConcatV2": _concat,
    "TensorListSplit": _split,
    "AddN": _add,
})  # fmt: skip
"""What takes or gives lists: functions of the namespace, the node and its inputs."""


def gives_list(node: SegmentNode) -> bool:
    """Whether a result is a list or a tensor array."""
    return any(r.dtype in (dtypes.variant, dtypes.resource) for r in node.results)
