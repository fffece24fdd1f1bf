"""Elements of one dataset, dealt out in turn to several consumers."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from opdock import errors
from opdock.dtypes import DType
from opdock.kernels.data.base import Dataset, DatasetIterator, Element, check_fits, invalid
from opdock.kernels.data.context import Context
from opdock.kernels.data.outcomes import Outcome, drawn, settled
from opdock.kernels.data.parallel import Crew
from opdock.kernels.select.cells import Resources
from opdock.shapes import Shape

__all__ = ["DealtIterator"]

_serial: Final = itertools.count()


class DealtIterator:
    """A place for an iterator whose elements consumers, the shards, get in turn.

    Args:
        name: for messages.
        shards: how many there are.
        types, shapes: of the elements.
        resources: of the session.
    """

    def __init__(
        self, name: str, shards: int, types: Sequence[DType], shapes: Sequence[Shape],
        resources: Resources,
    ) -> None:  # fmt: skip
        self.types, self.shapes = tuple(types), tuple(shapes)
        self.handle = f"{name}/{next(_serial)}".encode()
        self._shards = shards
        self._resources = resources
        self._lock = threading.RLock()
        self._deal: _Deal | None = None
        self._incarnation = 0

    def begin(self, dataset: Dataset, limit: int) -> int:
        """Begins to deal out a dataset, anew.

        Args:
            dataset: the elements.
            limit: how many of a shard may wait.

        Returns:
            By which shards ask for elements of this walk and no other.

        Raises:
            InvalidArgumentError: its elements are of another kind, or nothing may wait.
        """
        check_fits(self.types, self.shapes, dataset.types, dataset.shapes)
        if limit < 1:
            raise invalid(f"max_buffer_size must be greater than zero, got {limit}")
        deal = _Deal(self._resources, dataset.iterator(Context(dataset)), self._shards, limit)
        with self._lock:
            old, self._deal = self._deal, deal
            self._incarnation += 1
            number = self._incarnation
        if old is not None:
            old.close()
        return number

    def next(self, shard: int, incarnation: int) -> Element:
        """The next element of a shard.

        Raises:
            InvalidArgumentError: there is no such shard, or it asks for another walk.
            FailedPreconditionError: no dataset has been given yet.
            OutOfRangeError: there is no other.
        """
        if not 0 <= shard < self._shards:
            raise invalid(f"Shard {shard} is not in [0, {self._shards})")
        with self._lock:
            deal, current = self._deal, self._incarnation
        if deal is None:
            raise errors.FailedPreconditionError(
                None, None,
                "GetNextFromShard() failed because the MultiDeviceIterator has not been "
                "initialized. Ensure that you have run the initializer operation for this iterator "
                "before getting the next element.",
            )  # fmt: skip
        if incarnation != current:
            raise invalid(f"Invalid incarnation id. Provided: {incarnation}; Expected: {current}")
        element = deal.take(shard)
        if element is None:
            raise errors.OutOfRangeError(None, None, "End of sequence")
        return element

    def close(self) -> None:
        """Ends the thread; the session is over."""
        with self._lock:
            deal, self._deal = self._deal, None
        if deal is not None:
            deal.close()


class _Deal(Crew):
    """One walk: a thread draws elements, and puts each before the shard whose turn it is."""

    def __init__(
        self, resources: Resources, source: DatasetIterator, shards: int, limit: int
    ) -> None:
        super().__init__(resources, source)
        self._waiting: list[deque[Outcome]] = [deque() for _ in range(shards)]
        self._limit = limit
        self._over = False
        self._started = False

    def take(self, shard: int) -> Element | None:
        """The next element of a shard; None at the end."""
        with self.condition:
            begins, self._started = not self._started, True
        if begins:
            self.start(self._hand_out, 1, "opdock_deal")
        waiting = self._waiting[shard]
        with self.condition:
            self.wait(lambda: bool(waiting) or self._over)
            if not waiting:
                return None
            outcome = waiting.popleft()
            self.condition.notify_all()
        return settled(outcome)

    def _has_room(self, waiting: deque[Outcome]) -> bool:
        return len(waiting) < self._limit

    def _hand_out(self) -> None:
        for waiting in itertools.cycle(self._waiting):
            with self.condition:
                self.wait(functools.partial(self._has_room, waiting))
            outcome = drawn(self.source)
            with self.condition:
                self._over = outcome == (None, None)
                if not self._over:
                    waiting.append(outcome)
                self.condition.notify_all()
                if self._over:
                    return
