"""Where functions write what they make of an element: into the batch that it belongs to."""

from __future__ import annotations

from typing import Final

import numpy as np

from opdock import shapes
from opdock.io.recycling import Recycled
from opdock.kernels.data.base import Dataset, Element

__all__ = ["Places", "batches_again"]

_LEAST: Final = 1 << 12
"""Bytes of an element from which copying it takes longer than finding its place."""
_MOST: Final = 1 << 28
"""Bytes that may be taken before it is known that there are so many elements."""
_FRESH: Final = 1 << 20
"""Bytes of a column from which its pages come from the system each time."""
_BATCHES: Final = 4
"""One is filled, one waits, one is looked at, and one may be begun."""


def batches_again() -> Recycled:
    """The memory of an iterator's large columns, for one of them in each batch."""
    return Recycled(_BATCHES, _FRESH, _MOST)


class Places:
    """Columns whose rows are filled one after the other.

    Args:
        dataset: of the elements, which are all of one shape.
        count: the number of rows.
        memory: where large columns come from.

    Attributes:
        count: the number of rows.
        given: how many rows somebody was told to fill.
    """

    def __init__(self, dataset: Dataset, count: int, memory: Recycled) -> None:
        self._columns = tuple(
            [
                memory.empty((count, *[d or 0 for d in shape or ()]), dtype.np)
                for shape, dtype in zip(dataset.shapes, dataset.types, strict=True)
            ]
        )
        self.count = count
        self.given = 0

    @staticmethod
    def pay(dataset: Dataset, count: int) -> bool:
        """Whether elements are all of one shape, and so large that copying takes long."""
        size = 0
        for shape, dtype in zip(dataset.shapes, dataset.types, strict=True):
            numbers = shapes.num_elements(shape)
            if numbers is None or dtype.name in ("variant", "resource"):
                return False
            size += numbers * dtype.np.itemsize
        return size >= _LEAST and size * count <= _MOST

    def row(self, index: int) -> Element:
        """The place of an element."""
        return tuple([column[index, ...] for column in self._columns])

    def fill(self, index: int, element: Element, row: Element) -> bool:
        """Puts an element in its place, what does not lie there already.

        Args:
            index: of the row.
            element: the components.
            row: where they could have been written, if anywhere.

        Returns:
            Whether the element is of the shapes and types that the dataset said.
        """
        places = row or [None] * len(element)
        for column, part, place in zip(self._columns, element, places, strict=True):
            if part is place:
                continue
            if not isinstance(part, np.ndarray):
                return False
            if part.dtype != column.dtype or part.shape != column.shape[1:]:
                return False
            column[index, ...] = part
        return True

    def first(self, count: int) -> Element | None:
        """The first rows, which nobody else holds; None if there are none."""
        if count == self.count:
            return self._columns
        # Rows behind them may be filled still, and need not be kept in memory for a few.
        return tuple([column[:count].copy() for column in self._columns]) if count else None
