"""Datasets that work ahead in threads of their own: prefetching, and maps of several at once.

What is ahead is bounded, and comes in the order of the source unless told otherwise. An iterator's
threads know what they share with it and not the iterator, so that one which nobody holds any more
is collected, and ends them.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from opdock import errors
from opdock.kernels.data.base import (
    Captured,
    Context,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    State,
    invalid,
)
from opdock.kernels.data.mapping import map_error
from opdock.kernels.data.outcomes import Outcome, drawn, load_error, save_error, settled
from opdock.kernels.data.rows import Rows
from opdock.kernels.select.cells import Background, Resources

__all__ = [
    "AUTOTUNE", "AnyOrderDataset", "LimitedThreadsDataset", "ParallelMapDataset",
    "PrefetchDataset", "Prefetching",
]  # fmt: skip

AUTOTUNE: Final = -1
_LARGEST: Final = 2048
"""Where a limit that tunes itself stops doubling."""
_MOST_THREADS: Final = 64


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

    def start(self, work: Callable[[], None], count: int, name: str) -> None:
        """Has `count` threads do the work, unless all is over."""
        for _ in range(count):
            with self.condition:
                if self.closed:
                    return
                self._threads.append(self.resources.background(work, name))

    def wait(self, ready: Callable[[], bool]) -> None:
        """Waits, under the condition, until something is ready or all is over.

        Raises:
            CancelledError: the session, the step or the iterator ended.
        """
        self.resources.wait(self.condition, lambda: self.closed or ready())
        if self.closed:
            raise errors.CancelledError(None, None, "The iterator was closed.")

    def close(self, patient: bool = True) -> None:
        """Ends the threads, and the source when nobody uses it any more."""
        with self.condition:
            if self.closed:
                return
            self.closed = True
            self.condition.notify_all()
        for thread in self._threads:
            thread.stop()
        if patient:
            for thread in self._threads:
                thread.join()
        self.source.close()


# ---------------------------------------------------------------- prefetching
class PrefetchDataset(Following):
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

    @property
    def fresh(self) -> bool:
        """Whether nobody else holds an element's arrays."""
        return self.source.fresh

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        source = self.source.iterator(context)
        return source if self.size == 0 else Prefetching(self.resources, source, self.size)


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

    def produce(self) -> None:
        """Fills the buffer until the source ends."""
        while True:
            with self.condition:
                self.wait(lambda: len(self.waiting) < self.limit)
            with self.turn:
                outcome = drawn(self.source)
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
        condition: what is notified of changes, where several such iterators are watched at once.
    """

    def __init__(
        self, resources: Resources, source: DatasetIterator, size: int,
        condition: threading.Condition | None = None,
    ) -> None:  # fmt: skip
        self._buffer = _Buffer(resources, source, size, condition)
        self._started = False
        self._end = weakref.finalize(self, self._buffer.close, patient=False)
        self._end.atexit = False

    def begin(self) -> None:
        """Starts the thread, which the first call of `next` does otherwise."""
        if not self._started:
            self._started = True
            self._buffer.start(self._buffer.produce, 1, "opdock_prefetch")

    @property
    def ready(self) -> bool:
        """Whether `next` would not wait; asked under the condition."""
        return bool(self._buffer.waiting) or self._buffer.over

    def next(self) -> Element | None:
        """The next element; None at the end."""
        buffer = self._buffer
        self.begin()
        with buffer.condition:
            buffer.tune()
            buffer.wait(lambda: bool(buffer.waiting) or buffer.over)
            if not buffer.waiting:
                return None
            outcome = buffer.waiting.popleft()
            buffer.condition.notify_all()
        return settled(outcome)

    def save(self) -> State:
        """Where it stands."""
        buffer = self._buffer
        with buffer.turn, buffer.condition:
            return {
                "source": buffer.source.save(), "over": int(buffer.over),
                "waiting": [[e, save_error(x)] for e, x in buffer.waiting],
            }  # fmt: skip

    def restore(self, state: State) -> None:
        """Goes to where another iterator stood."""
        buffer = self._buffer
        with buffer.turn, buffer.condition:
            buffer.source.restore(state["source"])
            buffer.waiting = deque((e, load_error(x)) for e, x in state["waiting"])
            buffer.over = bool(state["over"])
        self._started = buffer.over

    def close(self) -> None:
        """Lets go of threads and files."""
        self._buffer.close()


class AnyOrderDataset(Following):
    """The same elements, in the order in which they are ready."""

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return self.source.iterator(context.in_any_order())


class LimitedThreadsDataset(Following):
    """The same elements, by maps that have so many threads at most."""

    def __init__(self, source: Dataset, threads: int) -> None:
        super().__init__(source)
        if threads < 1:
            raise invalid("`num_threads` must be greater than zero.")
        self.threads = threads

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return self.source.iterator(context.with_threads(self.threads))


# ---------------------------------------------------------------- maps
class ParallelMapDataset(Following):
    """A function of each element, of several at once.

    Args:
        source: the elements.
        function: of an element.
        limit: how many elements are worked on, or done and not asked for yet.
        in_order: whether results come in the order of the source.
        keeps_count: whether there must be a result for each element.
        types, shapes: of the results.
        resources: where threads come from.
    """

    def __init__(
        self, source: Dataset, function: Captured, limit: int, in_order: bool, keeps_count: bool,
        types: Any, shapes: Any, resources: Resources,
    ) -> None:  # fmt: skip
        super().__init__(source, types, shapes)
        if limit < 1:
            raise invalid("num_parallel_calls must be greater than zero.")
        self.function, self.limit, self.in_order = function, limit, in_order
        self.keeps_count, self.resources = keeps_count, resources

    @property
    def fresh(self) -> bool:
        """Whether nobody else holds an element's arrays: the function made them."""
        return True

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ParallelMapIterator(self, context)


class _Job:
    """An element and what becomes of it."""

    __slots__ = ("argument", "done", "outcome")

    def __init__(self, argument: Element | None, outcome: Outcome | None = None) -> None:
        self.argument = argument
        self.outcome: Outcome = outcome or (None, None)
        self.done = outcome is not None


class _Jobs(Crew):
    """Elements that are worked on, in the order of the source."""

    def __init__(
        self, resources: Resources, source: DatasetIterator, call: Callable[[Element], Element],
        limit: int,
    ) -> None:  # fmt: skip
        super().__init__(resources, source)
        self.jobs: deque[_Job] = deque()
        self.again: deque[_Job] = deque()  # of a restored state: not begun in this one
        self.limit = limit
        self.over = False
        self._call = call

    def work(self) -> None:
        """Takes an element, applies the function, and so on until the source ends."""
        while True:
            job = self._take()
            if job is None:
                return
            if not job.done:
                assert job.argument is not None
                try:
                    outcome: Outcome = self._call(job.argument), None
                except errors.CancelledError:
                    if self.closed:
                        raise
                    outcome = None, errors.CancelledError(None, None, "The function was cancelled")
                except Exception as e:  # it is raised where the element would have come
                    outcome = None, e
                job.outcome = outcome
            with self.condition:
                job.done = True
                self.condition.notify_all()

    def _take(self) -> _Job | None:
        """The next element, entered as a job; None at the end."""
        with self.condition:
            self.wait(lambda: len(self.jobs) < self.limit or self.over or bool(self.again))
            if self.again:
                return self.again.popleft()
        with self.turn:
            with self.condition:
                self.wait(lambda: True)
                if self.over:
                    return None
            element, error = drawn(self.source)
            job = _Job(element, None if error is None else (None, error))
            with self.condition:
                if element is None and error is None:
                    self.over = True
                    self.condition.notify_all()
                    return None
                self.jobs.append(job)
        return job

    def taken(self, in_order: bool) -> _Job | None:
        """The next job that is done, under the condition; None at the end."""
        self.wait(lambda: self._ready(in_order) is not None or (self.over and not self.jobs))
        found = self._ready(in_order)
        if found is not None:
            self.jobs.remove(found)
            self.condition.notify_all()
        return found

    def _ready(self, in_order: bool) -> _Job | None:
        if in_order:
            return self.jobs[0] if self.jobs and self.jobs[0].done else None
        return next((job for job in self.jobs if job.done), None)


class _ParallelMapIterator(DatasetIterator):
    def __init__(self, dataset: ParallelMapDataset, context: Context) -> None:
        source = dataset.source.iterator(context)
        call = dataset.function.within(context)
        self._dataset = dataset
        self._in_order = dataset.in_order and context.in_order
        self._threads = min(dataset.limit, _MOST_THREADS, context.threads or _MOST_THREADS)
        self._jobs = _Jobs(dataset.resources, source, call, dataset.limit)
        self._rows = Rows(dataset.source, dataset.function, context)
        self._started = False
        self._end = weakref.finalize(self, self._jobs.close, patient=False)
        self._end.atexit = False

    def columns(self, count: int) -> Element | None:
        # One call of many elements takes less than threads that share an interpreter.
        jobs = self._jobs
        with jobs.condition:
            if self._started or jobs.jobs or jobs.over:
                return None
        with jobs.turn:
            found = self._rows.columns(jobs.source, count)
        with jobs.condition:
            for element, error in self._rows.drawn:
                job = _Job(element, None if error is None else (None, error))
                jobs.jobs.append(job)
                if error is None:
                    jobs.again.append(job)
            self._rows.drawn.clear()
        return found

    def next(self) -> Element | None:
        jobs = self._jobs
        if not self._started:
            self._started = True
            jobs.start(jobs.work, self._threads, "opdock_parallel_map")
        with jobs.condition:
            job = jobs.taken(self._in_order)
        if job is None:
            return None
        try:
            return settled(job.outcome)
        except errors.OutOfRangeError as e:
            if job.argument is not None:
                map_error(e, self._dataset.keeps_count)
                return None
            raise

    def save(self) -> State:
        jobs = self._jobs
        with jobs.turn, jobs.condition:
            listed: list[Any] = []
            for job in jobs.jobs:
                element, error = job.outcome
                listed.append([job.argument, int(job.done), element, save_error(error)])
            return {"source": jobs.source.save(), "over": int(jobs.over), "jobs": listed}

    def restore(self, state: State) -> None:
        jobs = self._jobs
        with jobs.turn, jobs.condition:
            jobs.source.restore(state["source"])
            jobs.over = bool(state["over"])
            for argument, done, element, error in state["jobs"]:
                job = _Job(argument, (element, load_error(error)) if done else None)
                jobs.jobs.append(job)
                if not done:
                    jobs.again.append(job)

    def close(self) -> None:
        self._jobs.close()
