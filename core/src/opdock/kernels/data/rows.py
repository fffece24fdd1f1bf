"""Elements as columns, and functions of many elements at once.

Where a batch asks for so many elements, a map draws them, and calls its function once for all of
them, if the function allows it. What is drawn is what the batch needs. Results are those of calls
one by one: where anything fails, the elements that were drawn are called one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors, shapes
from opdock.failures import failures
from opdock.kernels.data.base import Captured, Dataset, DatasetIterator, Element, invalid
from opdock.kernels.data.context import Context
from opdock.kernels.data.outcomes import Outcome, drawn

__all__ = ["Rows", "elements_of", "stack"]

Array = np.ndarray[Any, Any]
_LEAST: Final = 4
"""Elements for which a call of many is worth its while."""
_FAILURES: Final = 3
"""After so many in a row, elements are called one by one for good."""


def stack(elements: Sequence[Element]) -> Element:
    """The components of elements of one shape, stacked.

    Raises:
        InvalidArgumentError: the shapes differ.
    """
    return tuple([_stacked(parts, i) for i, parts in enumerate(zip(*elements, strict=True))])


def _stacked(parts: Sequence[Any], component: int) -> Array:
    first = parts[0]
    if not isinstance(first, np.ndarray):  # a variant that is no array
        out = np.empty(len(parts), object)
        out[:] = parts
        return out
    shape = first.shape
    for part in parts:
        if part.shape != shape:
            raise invalid(
                f"Cannot batch tensors with different shapes in component {component}. First "
                f"element had shape {shapes.text(shape)} and element {_position(parts, part)} had "
                f"shape {shapes.text(part.shape)}."
            )
    out = np.empty((len(parts), *shape), first.dtype)
    for i, part in enumerate(parts):
        out[i, ...] = part
    return out


def _position(parts: Sequence[Any], part: Any) -> int:
    return next(i for i, p in enumerate(parts) if p is part)


def elements_of(columns: Element) -> list[Element]:
    """The elements whose components are the rows of columns."""
    return [tuple([c[i, ...] for c in columns]) for i in range(len(columns[0]))]


class Rows:
    """A map's function of many elements at once.

    Args:
        source: the dataset of the elements.
        function: of one element.
        context: of the map's iterator.

    Attributes:
        drawn: what was drawn of the source and has to be called one by one.
    """

    def __init__(self, source: Dataset, function: Captured, context: Context) -> None:
        self.drawn: deque[Outcome] = deque()
        self._failures = 0
        self._call: Callable[[Element], Element] | None = None
        self._find: Callable[[], Callable[[Element], Element] | None] | None = None
        if source.types and all(t.name not in ("variant", "resource") for t in source.types):
            self._find = lambda: function.by_rows(context)

    def columns(self, source: DatasetIterator, count: int) -> Element | None:
        """What the function gives for the next elements of an iterator; see its `columns`."""
        if self.drawn or count < _LEAST or self._failures >= _FAILURES:
            return None
        if self._find is not None:
            self._call, self._find = self._find(), None
        if self._call is None:
            return None
        columns = source.columns(count)
        if columns is None:
            self._draw(source, count)
            columns = self._stacked()
            if columns is None:
                return None
        results = self._called(self._call, columns)
        if results is None:
            self._failures += 1
            if not self.drawn:
                self.drawn.extend((element, None) for element in elements_of(columns))
        else:
            self._failures = 0
            for _ in range(min(len(columns[0]), len(self.drawn))):
                self.drawn.popleft()
        return results

    def _draw(self, source: DatasetIterator, count: int) -> None:
        while len(self.drawn) < count:
            outcome = drawn(source)
            if outcome != (None, None):
                self.drawn.append(outcome)
            if outcome[0] is None:
                return

    def _stacked(self) -> Element | None:
        """What was drawn before an error, if elements are of one shape."""
        elements = [element for element, _ in self.drawn if element is not None]
        if len(elements) < _LEAST:
            return None
        try:
            return stack(elements)
        except errors.InvalidArgumentError:
            self._failures += 1
            return None

    def _called(self, call: Callable[[Element], Element], columns: Element) -> Element | None:
        try:
            results = call(columns)
        except errors.CancelledError:
            raise
        except failures(Exception):  # whose fault it is shows when elements are called one by one
            return None
        count = len(columns[0])
        fits = all(isinstance(r, np.ndarray) and r.ndim and len(r) == count for r in results)
        return results if fits else None
