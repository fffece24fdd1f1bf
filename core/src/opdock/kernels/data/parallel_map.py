"""Maps that work on several elements at once, in threads of their own."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opdock import errors
from opdock.io.recycling import Recycled
from opdock.kernels.data.base import (
    Call,
    Captured,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.mapping import map_error
from opdock.kernels.data.outcomes import Outcome, drawn, load_error, save_error, settled
from opdock.kernels.data.parallel import Crew
from opdock.kernels.data.placing import Places, batches_again
from opdock.kernels.data.rows import Rows
from opdock.kernels.data.statistics import timed
from opdock.kernels.select.cells import Resources
from opdock.util.interrupts import finalizer

__all__ = ["ParallelMapDataset"]

_MOST_THREADS: Final = 64


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
    """An element and what becomes of it.

    Attributes:
        argument: the element; None where there is an error in its place.
        outcome: what the function gave, once it is done.
        places, index, row: where the result may be written, if anywhere.
    """

    __slots__ = ("argument", "done", "index", "outcome", "places", "row")

    def __init__(self, argument: Element | None, outcome: Outcome | None = None) -> None:
        self.argument = argument
        self.places: Places | None = None
        self.index = -1
        self.row: Element = ()
        self.outcome: Outcome = outcome or (None, None)
        self.done = outcome is not None


class _Room:
    """Batches to come, in which jobs get rows in the order of the source.

    Args:
        dataset: of the results.
        count: how many make a batch.
        memory: of the batches.
    """

    def __init__(self, dataset: Dataset, count: int, memory: Recycled) -> None:
        self.count = count
        self._dataset, self._memory = dataset, memory
        self._places: Places | None = None

    def lead(self, job: _Job) -> None:
        """Gives the job that comes next its row, if there is memory for it."""
        if self._places is None or self._places.given == self.count:
            try:
                self._places = Places(self._dataset, self.count, self._memory)
            except MemoryError:  # whoever asks for the batch hears of it
                self._places = None
                return
        job.places, job.index = self._places, self._places.given
        job.row = self._places.row(job.index)
        self._places.given += 1

    def batch(self, jobs: Sequence[_Job]) -> Places:
        """The batch that begins with the first of the jobs that there are."""
        for i, job in enumerate(jobs):
            if job.index == i and job.places is not None and job.places.count == self.count:
                return job.places
        # They began elsewhere and are copied; those that are still to come get the right rows.
        begun = Places(self._dataset, self.count, self._memory)
        whole = len(jobs) >= self.count
        self._places = Places(self._dataset, self.count, self._memory) if whole else begun
        self._places.given = len(jobs) % self.count
        return begun


def _closed(element: Element, places: Element = (), /) -> Element:
    """Stands for the function of an iterator that was closed."""
    raise errors.CancelledError(None, None, "The iterator was closed.")


class _Jobs(Crew):
    """Elements that are worked on, in the order of the source.

    Attributes:
        jobs: what was drawn and nobody has got yet.
        again: those of them that were drawn before there were threads.
        limit: how many jobs there may be beside those that somebody waits for.
        asked: for how many of the next jobs somebody waits at once.
        over: whether the source has ended.
        room: where the next results go, while somebody asks for batches; under `turn`.
    """

    def __init__(
        self, resources: Resources, source: DatasetIterator, call: Call, limit: int
    ) -> None:
        super().__init__(resources, source)
        self.jobs: deque[_Job] = deque()
        self.again: deque[_Job] = deque()
        self.limit = limit
        self.asked = 0
        self.over = False
        self.room: _Room | None = None
        self._rests = False
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
                    outcome: Outcome = self._call(job.argument, job.row), None
                except errors.CancelledError:
                    if self.closed:
                        raise
                    outcome = None, errors.CancelledError(None, None, "The function was cancelled")
                except BaseException as e:  # it is raised where the element would have come
                    outcome = None, e
                job.outcome = outcome
            with self.condition:
                job.done = True
                # Who waits for many is not woken for each: threads share an interpreter.
                if not self.asked or self._settled(self.asked):
                    self.condition.notify_all()

    def _take(self) -> _Job | None:
        """The next element, entered as a job; None at the end."""
        with self.condition:
            self.wait(self._goes_on)
            if self.again:
                return self.again.popleft()
        with self.turn:
            with self.condition:
                self.wait(lambda: True)
                if self.over:
                    return None
            element, error = drawn(self.source, BaseException)
            job = _Job(element, None if error is None else (None, error))
            room = self.room
            if room is not None and element is not None:
                room.lead(job)
            with self.condition:
                if element is None and error is None:
                    self.over = True
                    self.condition.notify_all()
                    return None
                self.jobs.append(job)
        return job

    def _goes_on(self) -> bool:
        if self._rests:
            return False
        return len(self.jobs) < self.limit + self.asked or self.over or bool(self.again)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While nothing is drawn, and nothing worked on: what has been begun is done."""
        with self.turn:
            with self.condition:
                self._rests = True
            try:
                with self.condition:
                    begun = [j for j in self.jobs if j not in self.again]
                    self.resources.wait(
                        self.condition, lambda: self.closed or all(j.done for j in begun)
                    )
                yield
            finally:
                with self.condition:
                    self._rests = False
                    self.condition.notify_all()

    def close(self, patient: bool = True) -> None:
        """Ends the threads, and lets go of batches: a collector may come late."""
        super().close(patient)
        with self.condition:
            self.jobs.clear()
            self.again.clear()
            self.room = None
            self._call = _closed  # its programs have buffers

    def taken(self, in_order: bool) -> _Job | None:
        """The next job that is done, under the condition; None at the end."""
        self.wait(lambda: self._ready(in_order) is not None or (self.over and not self.jobs))
        found = self._ready(in_order)
        if found is not None:
            self.jobs.remove(found)
            self.condition.notify_all()
        return found

    def many(self, count: int) -> list[_Job]:
        """The next jobs, under the condition: `count`, or those before the end or the first that
        failed."""
        self.asked = count
        self.condition.notify_all()
        try:
            self.wait(lambda: self._settled(count))
        finally:
            self.asked = 0
        found: list[_Job] = []
        while len(found) < count and self.jobs and self.jobs[0].outcome[0] is not None:
            found.append(self.jobs.popleft())
        self.condition.notify_all()
        return found

    def _settled(self, count: int) -> bool:
        for job in itertools.islice(self.jobs, count):
            if not job.done or job.outcome[0] is None:
                return job.done
        return self.over or len(self.jobs) >= count

    def _ready(self, in_order: bool) -> _Job | None:
        if in_order:
            return self.jobs[0] if self.jobs and self.jobs[0].done else None
        return next((job for job in self.jobs if job.done), None)


class _ParallelMapIterator(DatasetIterator):
    def __init__(self, dataset: ParallelMapDataset, context: Context) -> None:
        source = dataset.source.iterator(context)
        call = dataset.function.within(context)
        if context.statistics is not None:
            call = timed(call, context.statistics, dataset.label, dataset.limit)
        self._context = context
        self._measured = context.statistics is not None
        self._dataset = dataset
        self._in_order = dataset.in_order and context.in_order
        self._threads = min(dataset.limit, _MOST_THREADS, context.threads or _MOST_THREADS)
        self._jobs = _Jobs(dataset.resources, source, call, dataset.limit)
        self._rows = Rows(dataset.source, dataset.function, context)
        self._memory = batches_again()
        self._started = False
        self._end = weakref.finalize(self, finalizer(self._jobs.close), patient=False)
        self._end.atexit = False

    def columns(self, count: int) -> Element | None:
        found = self._by_rows(count)
        if found is not None or not (self._in_order and Places.pay(self._dataset, count)):
            return found
        return self._placed(count)

    def _by_rows(self, count: int) -> Element | None:
        # One call of many elements takes less than threads that share an interpreter.
        jobs = self._jobs
        if self._measured:  # each call is
            return None
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

    def _placed(self, count: int) -> Element | None:
        """The next elements, each written in its place by the thread that made it."""
        jobs = self._jobs
        with jobs.turn, jobs.condition:
            if jobs.room is None or jobs.room.count != count:
                jobs.room = _Room(self._dataset, count, self._memory)
            places = jobs.room.batch(jobs.jobs)
        self._begin()
        with jobs.condition:
            found = jobs.many(count)
        for i, job in enumerate(found):
            element, row = job.outcome[0], job.row if job.places is places else ()
            assert element is not None
            if not places.fill(i, element, row):
                with jobs.condition:  # `next` gives it
                    jobs.jobs.extendleft(reversed(found[i:]))
                return places.first(i)
        return places.first(len(found))

    def _begin(self) -> None:
        if not self._started:
            self._started = True
            self._jobs.start(self._jobs.work, self._threads, "opdock_parallel_map")

    def next(self) -> Element | None:
        jobs = self._jobs
        self._begin()
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
        self._context.hold(jobs.resting())
        with jobs.condition:
            listed: list[Any] = []
            for job in jobs.jobs:
                element, error = job.outcome
                listed.append([job.argument, int(job.done), element, save_error(error)])
            return {
                "source": jobs.source.save(), "over": int(jobs.over), "jobs": listed,
            }  # fmt: skip

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
