"""Interleaved datasets whose inner datasets are read in threads of their own."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from opdock import errors
from opdock.failures import failures
from opdock.kernels.data.base import Captured, Dataset, DatasetIterator, Element, State, invalid
from opdock.kernels.data.context import Context
from opdock.kernels.data.flattening import InterleaveDataset, InterleavingIterator, Made
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

    @property
    def kind(self) -> str:
        """What `AssertNextDataset` calls it: TF tells the ops of both versions apart."""
        return self.label.partition("/")[0].replace("Dataset", "")

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
        self._began = True  # whether all that is open works ahead

    def next(self) -> Element | None:
        if not self._began:
            self._began = True
            for current in self._open:
                if current is not None:
                    _begin(current.made)
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
        except failures(Exception):
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
            if current is not None and getattr(current.made.iterator, "ready", True):
                return place
        return None

    def _draw(self, place: int) -> None:
        argument, error = drawn(self.source)
        if argument is None and error is None:
            self._over = True
            return
        try:
            made = self._failed((None, error)) if argument is None else self._make(argument)
        except errors.CancelledError:
            raise
        except failures(Exception) as e:  # it is raised when the place's turn has come
            made = self._failed((None, e))
        self._put(place, argument or (), made)

    def _put(self, place: int, argument: Element, made: Made) -> None:
        super()._put(place, argument, made)
        if self._began:
            _begin(made)

    def restore(self, state: State) -> None:
        self._began = False  # nothing is drawn before all is restored
        super().restore(state)

    def _failed(self, outcome: Outcome | None) -> Made:
        return Made(_Failed(outcome), self.inside.made(), {})

    def _made_again(self, argument: Element, cell: State) -> Made:
        if "failed" in cell["iterator"]:
            return self._failed(None)
        return super()._made_again(argument, cell)

    def _walk(self, dataset: Dataset, context: Context) -> DatasetIterator:
        d = self._parallel
        source = _LimitedIterator(dataset.iterator(context), self._permits, self._utilization)
        return Prefetching(d.resources, source, d.ahead, context, self._condition)


def _begin(made: Made) -> None:
    if isinstance(made.iterator, Prefetching):
        made.iterator.begin()
