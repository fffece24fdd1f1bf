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
    Call,
    Dataset,
    DatasetIterator,
    Element,
    FollowingIterator,
    HandedOn,
)
from opdock.kernels.data.context import Context, Statistics

__all__ = [
    "Aggregator", "MeasuredDataset", "ToldDataset", "Utilization", "latency", "size", "timed",
]  # fmt: skip

Measure = Callable[[float, Element], float]


class Aggregator:
    """A histogram or a number for each name."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._histograms: dict[str, Histogram] = {}
        self._numbers: dict[str, float] = {}

    def add(self, name: str, value: float) -> None:
        """Counts a value."""
        with self._lock:
            self._histograms.setdefault(name, Histogram()).add(np.array(value))

    def set(self, name: str, value: float) -> None:
        """Notes a value in the place of the one before."""
        with self._lock:
            self._numbers[name] = value

    def summary(self) -> bytes:
        """A serialized Summary of all that was counted."""
        found = protos.Summary()
        with self._lock:
            for name, histogram in self._histograms.items():
                found.value.add(tag=name, histo=histogram.proto())
            for name, number in self._numbers.items():
                found.value.add(tag=name, simple_value=number)
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


class _Prefixed:
    """An aggregator that hears names with something in front of them."""

    def __init__(self, aggregator: Aggregator, before: str) -> None:
        self._aggregator, self._before = aggregator, before

    def add(self, name: str, value: float) -> None:
        self._aggregator.add(self._before + name, value)

    def set(self, name: str, value: float) -> None:
        self._aggregator.set(self._before + name, value)


class Utilization:
    """How many of those that may be at work are, while a `with` statement of each runs.

    Args:
        statistics: hears it.
        label: the dataset's.
        most: how many may be.
    """

    def __init__(self, statistics: Statistics, label: str, most: int) -> None:
        self._statistics, self._name, self._most = statistics, f"{label}::thread_utilization", most
        self._lock = threading.RLock()
        self._running = 0

    def _change(self, by: int) -> None:
        with self._lock:
            self._running += by
            self._statistics.set(self._name, self._running / self._most)

    def __enter__(self) -> None:
        self._change(1)

    def __exit__(self, *error: object) -> None:
        self._change(-1)


def timed(call: Call, statistics: Statistics, label: str, most: int) -> Call:
    """A function whose calls are timed; of `most` that may run at once, it is told how many do."""
    utilization = Utilization(statistics, label, most)

    def of(element: Element, places: Element = ()) -> Element:
        with utilization:
            begin = perf_counter()
            try:
                return call(element, places)
            finally:
                micros = latency(perf_counter() - begin, element)
                statistics.add(f"{label}::execution_time", micros)

    return of


class ToldDataset(HandedOn):
    """The same elements, while an aggregator hears of the datasets that they come through.

    Args:
        source: the elements.
        aggregator: hears.
        tag: what stands before the names, if anything does.
    """

    def __init__(self, source: Dataset, aggregator: Aggregator, tag: str) -> None:
        super().__init__(source)
        self._told = _Prefixed(aggregator, f"{tag}::" if tag else "")

    def within(self, context: Context) -> Context:
        """The context in which the aggregator hears of the source."""
        return context.with_statistics(self._told)


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
        if context.statistics is None:
            return self.source.iterator(context)
        return _MeasuredIterator(self, context)


class _MeasuredIterator(FollowingIterator):
    def __init__(self, dataset: MeasuredDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset

    def next(self) -> Element | None:
        begin = perf_counter()
        element = self.source.next()
        if element is not None and self.context.statistics is not None:
            measured = self._dataset.measure(perf_counter() - begin, element)
            self.context.statistics.add(self._dataset.tag, measured)
        return element
