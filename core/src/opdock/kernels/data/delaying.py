"""A dataset that waits before each element: pipelines are tried out with slow sources."""

from __future__ import annotations

import threading
import time

from opdock.kernels.data.base import Dataset, DatasetIterator, Element, FollowingIterator, HandedOn
from opdock.kernels.data.context import Context
from opdock.kernels.select.cells import Resources

__all__ = ["SleepDataset"]


class SleepDataset(HandedOn):
    """The same elements, each of which comes so much later.

    Args:
        source: the elements.
        seconds: how long it waits.
        resources: ends the waiting with the session.
    """

    def __init__(self, source: Dataset, seconds: float, resources: Resources) -> None:
        super().__init__(source)
        self.seconds, self.resources = seconds, resources

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _SleepIterator(self, context)


class _SleepIterator(FollowingIterator):
    def __init__(self, dataset: SleepDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset

    def next(self) -> Element | None:
        over = time.monotonic() + self._dataset.seconds
        condition = threading.Condition()
        with condition:
            self._dataset.resources.wait(condition, lambda: time.monotonic() >= over, deadline=over)
        return self.source.next()
