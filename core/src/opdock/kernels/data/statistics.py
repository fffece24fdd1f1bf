"""Statistics of what iterators give: counted where `tf.data.Options` say so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from opdock.io import protos
from opdock.io.summary_format import Histogram
from opdock.kernels.data.base import (
    Context,
    Dataset,
    DatasetIterator,
    Element,
    FollowingIterator,
    HandedOn,
)

__all__ = ["Aggregator", "MeasuredDataset", "ToldDataset", "latency", "size"]

Measure = Callable[[float, Element], float]


class Aggregator:
    """A histogram for each name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._histograms: dict[str, Histogram] = {}

    def tell(self, name: str, value: float) -> None:
        """Counts a value."""
        with self._lock:
            self._histograms.setdefault(name, Histogram()).add(np.array(value))

    def summary(self) -> bytes:
        """A serialized Summary of all that was counted."""
        found = protos.Summary()
        with self._lock:
            for name, histogram in self._histograms.items():
                found.value.add(tag=name, histo=histogram.proto())
        data: bytes = found.SerializeToString()
        return data


def latency(seconds: float, element: Element) -> float:
    """How long it took to make an element, in microseconds."""
    return round(seconds * 1e6)


def size(seconds: float, element: Element) -> float:
    """The bytes of an element: of its numbers, and the letters of its strings."""
    return sum(_bytes(np.asarray(component)) for component in element)


def _bytes(array: np.ndarray[Any, Any]) -> int:
    if not array.dtype.hasobject:
        return array.nbytes
    return sum(len(v) for v in array.reshape(-1) if isinstance(v, (bytes, str)))


class ToldDataset(HandedOn):
    """The same elements, while an aggregator hears of the datasets that they come through.

    Args:
        source: the elements.
        aggregator: hears.
        tag: what stands before the names, if anything does.
    """

    def __init__(self, source: Dataset, aggregator: Aggregator, tag: str) -> None:
        super().__init__(source)
        self._aggregator = aggregator
        self._before = f"{tag}::" if tag else ""

    def within(self, context: Context) -> Context:
        """The context in which the aggregator hears of the source."""
        tell, before = self._aggregator.tell, self._before
        return context.with_statistics(lambda name, value: tell(before + name, value))


class MeasuredDataset(HandedOn):
    """The same elements, with a number of each for the aggregator, if there is one.

    Args:
        source: the elements.
        tag: the name of the statistic.
        measure: the number of an element, which took so many seconds.
    """

    def __init__(self, source: Dataset, tag: str, measure: Measure) -> None:
        super().__init__(source)
        self.tag, self.measure = tag, measure

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        if context.tell is None:
            return self.source.iterator(context)
        return _MeasuredIterator(self, context)


class _MeasuredIterator(FollowingIterator):
    def __init__(self, dataset: MeasuredDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset

    def next(self) -> Element | None:
        begin = perf_counter()
        element = self.source.next()
        if element is not None and self.context.tell is not None:
            measured = self._dataset.measure(perf_counter() - begin, element)
            self.context.tell(self._dataset.tag, measured)
        return element
