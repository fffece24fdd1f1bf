"""Datasets that call functions of the user's: maps, filters, scans."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.failures import failures
from opdock.kernels.data.base import (
    Captured,
    Chosen,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    FollowingIterator,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.outcomes import Outcome, load_outcomes, save_outcomes, settled
from opdock.kernels.data.placing import Places, batches_again
from opdock.kernels.data.rows import Rows
from opdock.shapes import Shape

__all__ = [
    "FilterDataset", "MapDataset", "ScanDataset", "TakeWhileDataset", "checked_predicate",
    "map_error",
]  # fmt: skip


def map_error(error: errors.OutOfRangeError, keeps_count: bool) -> None:
    """What becomes of the end of a sequence inside a function: the end of the dataset, or an error.

    Raises:
        InvalidArgumentError: the dataset must have as many elements as its source.
    """
    if keeps_count:
        text = f"Function invocation produced OutOfRangeError: {error.message}"
        raise errors.InvalidArgumentError(error.node_def, error.op, text) from error


class MapDataset(Following):
    """A function of each element."""

    def __init__(
        self, source: Dataset, function: Captured, keeps_count: bool, types: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:  # fmt: skip
        super().__init__(source, types, shapes)
        self.function, self.keeps_count = function, keeps_count

    @property
    def fresh(self) -> bool:
        """Whether nobody else holds an element's arrays: the function made them."""
        return True

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _MapIterator(self, context)


class _MapIterator(FollowingIterator):
    def __init__(self, dataset: MapDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset
        self._call = dataset.function.within(context)
        self._rows = Rows(dataset.source, dataset.function, context)
        self._made: deque[Outcome] = deque()  # what a batch could not use
        self._memory = batches_again()

    def columns(self, count: int) -> Element | None:
        if self._made:
            return None
        found = self._rows.columns(self.source, count)
        if found is not None or not Places.pay(self._dataset, count):
            return found
        return self._placed(count)

    def _placed(self, count: int) -> Element | None:
        """The next elements, each written in its place."""
        places = Places(self._dataset, count, self._memory)
        for i in range(count):
            row = places.row(i)
            try:
                element = self._next(row)
            except errors.CancelledError:
                raise
            except failures(Exception) as e:  # it is raised where the element would have come
                self._made.append((None, e))
                return places.first(i)
            if element is None or not places.fill(i, element, row):
                self._made.append((element, None))
                return places.first(i)
        return places.first(count)

    def next(self) -> Element | None:
        return settled(self._made.popleft()) if self._made else self._next()

    def _next(self, place: Element = ()) -> Element | None:
        drawn = self._rows.drawn
        element = settled(drawn.popleft()) if drawn else self.source.next()
        if element is None:
            return None
        try:
            return self._call(element, place)
        except errors.OutOfRangeError as e:
            map_error(e, self._dataset.keeps_count)
            return None

    def save(self) -> State:
        drawn = save_outcomes(self._rows.drawn)
        return {**super().save(), "drawn": drawn, "made": save_outcomes(self._made)}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._rows.drawn = load_outcomes(state["drawn"])
        self._made = load_outcomes(state["made"])


def checked_predicate(results: Element) -> bool:
    """What a predicate said.

    Raises:
        InvalidArgumentError: it is no scalar bool.
    """
    if len(results) != 1 or np.ndim(results[0]) or np.asarray(results[0]).dtype != np.bool_:
        raise invalid("Filter predicate `f` must return a scalar bool.")
    return bool(results[0])


class FilterDataset(Chosen):
    """The elements of which a predicate holds."""

    def __init__(self, source: Dataset, predicate: Captured) -> None:
        super().__init__(source)
        self.predicate = predicate

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _FilterIterator(self, context)


class _FilterIterator(FollowingIterator):
    saved = ("_kept", "_dropped")

    def __init__(self, dataset: FilterDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._holds = dataset.predicate.within(context)
        self._label = dataset.label
        self._kept = self._dropped = 0

    def next(self) -> Element | None:
        while True:
            element = self.source.next()
            if element is None:
                return None
            holds = checked_predicate(self._holds(element))
            self._kept += holds
            self._dropped += not holds
            if self.context.statistics is not None:
                what, number = ("filtered", self._kept) if holds else ("dropped", self._dropped)
                self.context.statistics.set(f"{self._label}::{what}_elements", number)
            if holds:
                return element


class TakeWhileDataset(Chosen):
    """The elements before the first of which a predicate does not hold."""

    def __init__(self, source: Dataset, predicate: Captured) -> None:
        super().__init__(source)
        self.predicate = predicate

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _TakeWhileIterator(self, context)


class _TakeWhileIterator(FollowingIterator):
    saved = ("_over",)

    def __init__(self, dataset: TakeWhileDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._holds = dataset.predicate.within(context)
        self._over = 0

    def next(self) -> Element | None:
        element = None if self._over else self.source.next()
        if element is None or not checked_predicate(self._holds(element)):
            self._over = 1
            return None
        return element


class ScanDataset(Following):
    """A function of a state and each element gives the next state and an element."""

    def __init__(
        self, source: Dataset, start: Element, function: Captured, keeps_count: bool, types: Any,
        shapes: Any,
    ) -> None:  # fmt: skip
        super().__init__(source, types, shapes)
        self.start, self.function, self.keeps_count = start, function, keeps_count

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ScanIterator(self, context)


class _ScanIterator(FollowingIterator):
    saved = ("_state",)

    def __init__(self, dataset: ScanDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._call = dataset.function.within(context)
        self._state = tuple(dataset.start)
        self._keeps_count = dataset.keeps_count

    def next(self) -> Element | None:
        element = self.source.next()
        if element is None:
            return None
        try:
            results = self._call((*self._state, *element))
        except errors.OutOfRangeError as e:
            map_error(e, self._keeps_count)
            return None
        count = len(self._state)
        self._state = results[:count]
        return results[count:]


# ---------------------------------------------------------------- groups
def key_of(results: Element, what: str) -> int:
    """The key that a function gave.

    Raises:
        InvalidArgumentError: it is no scalar int64.
    """
    if len(results) != 1 or np.ndim(results[0]) or np.asarray(results[0]).dtype != dtypes.int64.np:
        raise invalid(f"{what} must return a scalar int64.")
    return int(results[0])
