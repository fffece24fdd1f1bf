"""Interleaved datasets whose inner datasets are read in threads of their own."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from opdock import errors
from opdock.kernels.data.base import (
    Captured,
    Context,
    Dataset,
    DatasetIterator,
    Element,
    State,
    invalid,
)
from opdock.kernels.data.mapping import InterleaveDataset, InterleavingIterator
from opdock.kernels.data.outcomes import Outcome, drawn, load_outcomes, save_outcomes, settled
from opdock.kernels.data.parallel import Prefetching
from opdock.kernels.data.statistics import Utilization
from opdock.kernels.select.cells import Resources

__all__ = ["ParallelInterleaveDataset"]


class ParallelInterleaveDataset(InterleaveDataset):
    """The elements of an `InterleaveDataset` in the same order, made ahead.

    Args:
        source: the arguments of the function.
        function: makes a dataset of an element.
        cycle, block: how many datasets are open, and how many elements of each come in a row.
        limit: how many datasets work on an element at once.
        ahead: how many elements of each may wait.
        in_order: whether elements come in the order of an `InterleaveDataset`, rather than from
            whichever open dataset has one.
        types, shapes: of the elements.
        resources: where threads come from.
    """

    def __init__(
        self, source: Dataset, function: Captured, cycle: int, block: int, limit: int, ahead: int,
        in_order: bool, types: Any, shapes: Any, resources: Resources,
    ) -> None:  # fmt: skip
        super().__init__(source, function, cycle, block, types, shapes)
        if limit < 1:
            raise invalid("num_parallel_calls must be greater than zero.")
        self.limit, self.ahead, self.resources = limit, ahead, resources
        self.in_order = in_order

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ParallelInterleavingIterator(self, context)


class _LimitedIterator(DatasetIterator):
    def __init__(
        self, source: DatasetIterator, permits: threading.Semaphore,
        utilization: AbstractContextManager[None],
    ) -> None:  # fmt: skip
        self._source, self._permits, self._utilization = source, permits, utilization

    def next(self) -> Element | None:
        with self._permits, self._utilization:
            return self._source.next()

    def save(self) -> State:
        return self._source.save()

    def restore(self, state: State) -> None:
        self._source.restore(state)

    def close(self) -> None:
        self._source.close()


class _Failed(DatasetIterator):
    """In the place of a dataset that could not be made."""

    def __init__(self, outcome: Outcome | None) -> None:
        self._outcome = outcome

    def next(self) -> Element | None:
        outcome, self._outcome = self._outcome, None
        return None if outcome is None else settled(outcome)

    def save(self) -> State:
        return {"failed": [] if self._outcome is None else save_outcomes([self._outcome])}

    def restore(self, state: State) -> None:
        self._outcome = next(iter(load_outcomes(state["failed"])), None)


class _ParallelInterleavingIterator(InterleavingIterator):
    """Opens the datasets of all free places of the cycle before it asks one for an element."""

    def __init__(self, dataset: ParallelInterleaveDataset, context: Context) -> None:
        super().__init__(dataset, context, dataset.cycle, dataset.block)
        self._parallel = dataset
        self._permits = threading.Semaphore(dataset.limit)
        self._utilization: AbstractContextManager[None] = nullcontext()
        if context.statistics is not None:
            self._utilization = Utilization(context.statistics, dataset.label, dataset.limit)
        self._condition = threading.Condition()
        self._in_order = dataset.in_order and context.in_order

    def next(self) -> Element | None:
        # Places become free in the order of the cycle, and are taken again in that order.
        cycle = len(self._open)
        for i in range(cycle):
            place = (self._place + i) % cycle
            if self._over:
                break
            if self._open[place] is None:
                self._draw(place)
        if not self._in_order and self._count:
            self._go_where_something_is()
        try:
            return super().next()
        except errors.CancelledError:
            raise
        except Exception:
            self._count_one()  # an error is one of the elements of its dataset
            raise

    def _go_where_something_is(self) -> None:
        with self._condition:
            self._parallel.resources.wait(self._condition, lambda: self._ready() is not None)
            place = self._ready()
        if place is not None and place != self._place:
            self._place, self._taken = place, 0

    def _ready(self) -> int | None:
        cycle = len(self._open)
        for i in range(cycle):
            place = (self._place + i) % cycle
            current = self._open[place]
            if current is not None and getattr(current.iterator, "ready", True):
                return place
        return None

    def _draw(self, place: int) -> None:
        argument, error = drawn(self.source)
        if argument is None and error is None:
            self._over = True
            return
        if argument is None:
            self._put(place, (), _Failed((None, error)), {})
            return
        try:
            self._fill(place, argument)
        except errors.CancelledError:
            raise
        except Exception as e:  # it is raised when the place's turn has come
            self._put(place, argument, _Failed((None, e)), {})

    def _put(
        self, place: int, argument: Element, iterator: DatasetIterator, streams: State
    ) -> None:
        super()._put(place, argument, iterator, streams)
        if isinstance(iterator, Prefetching):
            iterator.begin()

    def _made_again(self, argument: Element, state: State) -> DatasetIterator:
        if "failed" not in state:
            return super()._made_again(argument, state)
        failed = _Failed(None)
        failed.restore(state)
        return failed

    def _walk(self, dataset: Dataset) -> DatasetIterator:
        d = self._parallel
        source = _LimitedIterator(dataset.iterator(self.inside), self._permits, self._utilization)
        return Prefetching(d.resources, source, d.ahead, self._condition)
