"""Datasets that work ahead in threads of their own, and what such threads share.

What is ahead is bounded, and comes in the order of the source unless told otherwise. An iterator's
threads know what they share with it and not the iterator, so that one which nobody holds any more
is collected, and ends them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from opdock import errors
from opdock.kernels.data.base import Dataset, DatasetIterator, Element, HandedOn, State, invalid
from opdock.kernels.data.context import Context, Statistics
from opdock.kernels.data.outcomes import Outcome, drawn, load_outcomes, save_outcomes, settled
from opdock.kernels.select.cells import Background, Resources
from opdock.util.interrupts import finalizer
from opdock.util.locks import renew

__all__ = [
    "AUTOTUNE", "Crew", "LimitedThreadsDataset", "PrefetchDataset", "Prefetching", "ThreadPool",
    "parallelism",
]  # fmt: skip

AUTOTUNE: Final = -1
_LARGEST: Final = 2048
"""Where a limit that tunes itself stops doubling."""
_working: Final[weakref.WeakSet[Crew]] = weakref.WeakSet()


def parallelism(count: int) -> int:
    """How many calls at once; as many as there are cores where the number is to tune itself."""
    return max(2, os.cpu_count() or 1) if count == AUTOTUNE else count


class Crew:
    """Threads and what they share with the iterator that started them.

    Attributes:
        condition: guards all else, and is notified of every change.
        source: what they draw from; one at a time, under `turn`.
        turn: held while the source is asked, or must stand still.
        closed: whether all is over.
    """

    def __init__(
        self, resources: Resources, source: DatasetIterator,
        condition: threading.Condition | None = None,
    ) -> None:  # fmt: skip
        self.condition = threading.Condition() if condition is None else condition
        self.turn = threading.Lock()
        self.source = source
        self.closed = False
        self.resources = resources
        self._threads: list[Background] = []
        self._forsaken = self._ended = False
        self._closer: int | None = None

    def start(self, work: Callable[[], None], count: int, name: str) -> None:
        """Has `count` threads do the work, unless all is over; fewer, if there is room for fewer.

        Raises:
            ResourceExhaustedError: the system has no room for a single one.
        """
        for number in range(count):
            with self.condition:
                if self.closed:
                    return
                _working.add(self)
                try:
                    self._threads.append(self.resources.background(work, name))
                except errors.ResourceExhaustedError:
                    if not number:
                        raise
                    return

    def wait(self, ready: Callable[[], bool]) -> None:
        """Waits, under the condition, until something is ready or all is over.

        Raises:
            CancelledError: the session, the step or the iterator ended.
            FailedPreconditionError: this is a child of `fork`, and the threads are its parent's.
        """
        self.resources.wait(self.condition, lambda: self.closed or ready())
        if self._forsaken:
            raise _forsaken()
        if self.closed:
            raise errors.CancelledError(None, None, "The iterator was closed.")

    def close(self, patient: bool = True) -> None:
        """Ends the threads, and the source when nobody uses it any more."""
        with self.condition:
            mine = threading.get_ident()
            if self._ended or (self.closed and self._closer != mine):
                return
            self.closed, self._closer = True, mine
            self.condition.notify_all()
        for thread in self._threads:
            thread.stop()
        if patient:
            for thread in self._threads:
                thread.join()
        self.source.close()
        self._ended = True  # what a Ctrl-C left undone, the next call of its thread does

    def forsake(self) -> None:
        """Leaves the work to the process that has the threads: no element is drawn by both.

        One of them may have been in the middle of an element, and held whatever there is.
        """
        if not self.closed:
            self._forsaken = self.closed = True
            self.source = _ForsakenIterator()
        renew(self.condition)
        self.turn = threading.Lock()
        self._threads.clear()


def _forsaken() -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError(
        None, None,
        "The threads of this iterator are in the process that this one was forked from. "
        "Initialize it again, or make the session in the child.",
    )  # fmt: skip


class _ForsakenIterator(DatasetIterator):
    """What has been drawn from it, nobody in this process knows."""

    def next(self) -> Element | None:
        raise _forsaken()

    def save(self) -> State:
        raise _forsaken()

    def restore(self, state: State) -> None:
        raise _forsaken()


def _after_fork() -> None:
    for crew in list(_working):
        crew.forsake()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---------------------------------------------------------------- prefetching
class PrefetchDataset(HandedOn):
    """The same elements, made before they are asked for.

    Args:
        source: the elements.
        size: how many may wait; 0 for none, `AUTOTUNE` for what keeps the consumer from waiting.
        resources: where threads come from.
    """

    def __init__(self, source: Dataset, size: int, resources: Resources) -> None:
        super().__init__(source)
        if size < AUTOTUNE:
            raise invalid("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")
        self.size, self.resources = size, resources

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        source = self.source.iterator(context)
        if self.size == 0:
            return source
        made = Prefetching(self.resources, source, self.size, context)
        made.statistics, made.label = context.statistics, self.label
        return made


class _Buffer(Crew):
    """Elements that wait for the consumer."""

    def __init__(
        self, resources: Resources, source: DatasetIterator, size: int,
        condition: threading.Condition | None,
    ) -> None:  # fmt: skip
        super().__init__(resources, source, condition)
        self.waiting: deque[Outcome] = deque()
        self.tuned = size == AUTOTUNE
        self.limit = 1 if self.tuned else size
        self.over = False
        self._was_full = False

    def tune(self) -> None:
        """Notes what a consumer finds: a buffer that was full and is empty now is too small."""
        if not self.tuned:
            return
        if len(self.waiting) == self.limit:
            self._was_full = True
        elif not self.waiting and self._was_full and not self.over:
            self.limit = min(2 * self.limit, self.limit + _LARGEST)
            self._was_full = False

    def close(self, patient: bool = True) -> None:
        """Ends the thread, and lets go of elements: a collector may come late."""
        super().close(patient)
        with self.condition:
            self.waiting.clear()

    def produce(self) -> None:
        """Fills the buffer until the source ends."""
        while True:
            with self.condition:
                self.wait(lambda: len(self.waiting) < self.limit)
            with self.turn:
                outcome = drawn(self.source, BaseException)
                with self.condition:
                    if outcome == (None, None):
                        self.over = True
                    else:
                        self.waiting.append(outcome)
                    self.condition.notify_all()
                    if self.over:
                        return


class Prefetching(DatasetIterator):
    """An iterator whose elements a thread makes ahead.

    Args:
        resources: where the thread comes from.
        source: where the elements come from; closed with this one.
        size: how many may wait, or `AUTOTUNE`.
        context: of the source.
        condition: what is notified of changes, where several such iterators are watched at once.

    Attributes:
        statistics: hears how full the buffer is, if anybody does.
        label: under which name.
    """

    statistics: Statistics | None = None
    label = ""

    def __init__(
        self, resources: Resources, source: DatasetIterator, size: int, context: Context,
        condition: threading.Condition | None = None,
    ) -> None:  # fmt: skip
        self._context = context
        self._buffer = _Buffer(resources, source, size, condition)
        self._started = False
        self._prepared = False  # whether the buffer knows that somebody asks
        self._end = weakref.finalize(self, finalizer(self._buffer.close), patient=False)
        self._end.atexit = False

    def begin(self) -> None:
        """Starts the thread, which the first call of `next` does otherwise."""
        if not self._started:
            self._started = True
            self._buffer.start(self._buffer.produce, 1, "opdock_prefetch")

    @property
    def ready(self) -> bool:
        """Whether `next` would not wait; asked under the condition."""
        buffer = self._buffer
        return bool(buffer.waiting) or buffer.over or buffer.closed

    def prepare(self) -> None:
        """Waits until an element is ready, or the end."""
        buffer = self._buffer
        self.begin()
        with buffer.condition:
            if not self._prepared:
                buffer.tune()
                self._prepared = True
            buffer.wait(lambda: self.ready)

    def next(self) -> Element | None:
        """The next element; None at the end."""
        buffer = self._buffer
        self.begin()
        with buffer.condition:
            if not self._prepared:
                buffer.tune()
            self._prepared = False
            buffer.wait(lambda: self.ready)
            if not buffer.waiting:
                return None
            if self.statistics is not None:
                self._measure(self.statistics)
            outcome = buffer.waiting.popleft()
            buffer.condition.notify_all()
        return settled(outcome)

    def _measure(self, statistics: Statistics) -> None:
        size, most = len(self._buffer.waiting), self._buffer.limit
        statistics.add(f"{self.label}::buffer_utilization", size / most)
        statistics.set(f"{self.label}::buffer_size", size)
        statistics.set(f"{self.label}::buffer_capacity", most)

    def save(self) -> State:
        """Where it stands."""
        buffer = self._buffer
        self._context.hold(buffer.turn)
        with buffer.condition:
            return {
                "source": buffer.source.save(), "over": int(buffer.over),
                "waiting": save_outcomes(buffer.waiting),
            }  # fmt: skip

    def restore(self, state: State) -> None:
        """Goes to where another iterator stood."""
        buffer = self._buffer
        with buffer.turn, buffer.condition:
            buffer.source.restore(state["source"])
            buffer.waiting = load_outcomes(state["waiting"])
            buffer.over = bool(state["over"])
        self._started = buffer.over

    def close(self) -> None:
        """Lets go of threads and files."""
        self._buffer.close()


@dataclass(frozen=True)
class ThreadPool:
    """How many threads the maps of a dataset may have, as a resource."""

    threads: int


class LimitedThreadsDataset(HandedOn):
    """The same elements, by maps that have so many threads at most."""

    def __init__(self, source: Dataset, threads: int) -> None:
        super().__init__(source)
        if threads < 1:
            raise invalid("`num_threads` must be greater than zero.")
        self.threads = threads

    def within(self, context: Context) -> Context:
        """A context with so many threads."""
        return context.with_threads(self.threads)
