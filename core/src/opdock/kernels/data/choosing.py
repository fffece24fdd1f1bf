"""Datasets with elements of others that are new, can be made or say so, and with all, kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import errors
from opdock.kernels.data.base import (
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

__all__ = ["CacheDataset", "FilterByLastDataset", "IgnoreErrorsDataset", "UniqueDataset"]


class FilterByLastDataset(Following):
    """The elements whose last component holds, without it."""

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _FilterByLastIterator(self.source, context)


class _FilterByLastIterator(FollowingIterator):
    def next(self) -> Element | None:
        while True:
            element = self.source.next()
            if element is None or bool(element[-1]):
                return None if element is None else element[:-1]


class UniqueDataset(Following):
    """Each element the first time that it comes."""

    def __init__(self, source: Dataset) -> None:
        super().__init__(source)
        if len(source.types) != 1:
            raise invalid("UniqueDataset only supports inputs with a single component.")
        if source.types[0].name not in ("int32", "int64", "string"):
            raise invalid(
                "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or "
                "`tf.string` component."
            )

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _UniqueIterator(self.source, context)


class _UniqueIterator(FollowingIterator):
    def __init__(self, source: Dataset, context: Context) -> None:
        super().__init__(source, context)
        self._seen: dict[Any, Element] = {}

    def next(self) -> Element | None:
        while True:
            element = self.source.next()
            if element is None:
                return None
            array = np.asarray(element[0])
            data = tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()
            key = array.shape, data
            if key not in self._seen:
                self._seen[key] = element
                return element

    def save(self) -> State:
        return {**super().save(), "seen": list(self._seen.values())}

    def restore(self, state: State) -> None:
        super().restore(state)
        for element in state["seen"]:
            array = np.asarray(element[0])
            data = tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()
            self._seen[array.shape, data] = element


class IgnoreErrorsDataset(Chosen):
    """The elements that could be made."""

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _IgnoreErrorsIterator(self.source, context)


class _IgnoreErrorsIterator(FollowingIterator):
    def next(self) -> Element | None:
        while True:
            try:
                return self.source.next()
            except errors.CancelledError:
                raise
            except errors.OpError:
                continue


class CacheDataset(Following):
    """The elements, which are made once for all walks of an iterator."""

    @property
    def kind(self) -> str:
        """What `AssertNextDataset` calls it."""
        return "MemoryCacheImpl"

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _CacheIterator(self.source, context, context.keep(self, _Kept))


class _Kept:
    """The elements of a dataset, and whether they are all."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.complete = False

    def save(self) -> State:
        return {"elements": list(self.elements), "complete": int(self.complete)}

    def restore(self, state: State) -> None:
        self.elements, self.complete = list(state["elements"]), bool(state["complete"])


class _CacheIterator(DatasetIterator):
    def __init__(self, source: Dataset, context: Context, kept: _Kept) -> None:
        self._dataset, self._context, self._kept = source, context, kept
        self._index = 0
        self._source: DatasetIterator | None = None
        self._mine: list[Element] = []

    def next(self) -> Element | None:
        if self._kept.complete and self._source is None:
            if self._index >= len(self._kept.elements):
                return None
            self._index += 1
            return self._kept.elements[self._index - 1]
        if self._source is None:
            self._source = self._dataset.iterator(self._context)
        element = self._source.next()
        if element is not None:
            self._mine.append(element)
            self._index += 1
            return element
        if not self._kept.complete:
            self._kept.elements, self._kept.complete = self._mine, True
        return None

    def save(self) -> State:
        inner = None if self._source is None else self._source.save()
        return {"index": self._index, "source": inner, "mine": list(self._mine)}

    def restore(self, state: State) -> None:
        self._index, self._mine = state["index"], list(state["mine"])
        if state["source"] is not None:
            self._source = self._dataset.iterator(self._context)
            self._source.restore(state["source"])

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
