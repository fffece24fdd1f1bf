"""Steps on several threads: independent heavy ops run at the same time.

The caller's thread goes through the program; helpers take over heavy steps that are ready. It never
waits for a helper to begin, so a step ends even when all helpers are busy elsewhere.
"""

from __future__ import annotations

import contextvars
import functools
import heapq
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from opdock import errors
from opdock.compiler.emit.overlap import Overlap
from opdock.runtime.cancellation import patience
from opdock.runtime.program.bind import Bound
from opdock.runtime.program.claims import ClaimError
from opdock.runtime.program.executor import Executor
from opdock.runtime.recover.lost import RestartError, has_effect
from opdock.util.threads import begin


class Helpers:
    """Threads that a session's steps share, started when first needed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = 0
        self._lock = threading.RLock()

    def ask(self, task: Callable[[], None]) -> None:
        """Runs `task`, which must not raise, on a helper, some time, if there is any."""
        if self._started < self._count:
            with self._lock:
                if self._started < self._count:
                    self._recruit()
        if self._started:
            self._tasks.put(task)

    def _recruit(self) -> None:
        try:
            begin(threading.Thread(target=self._serve, daemon=True, name="opdock-op"))
        except errors.ResourceExhaustedError:
            self._count = self._started  # who asks does what helpers do not
        else:
            self._started += 1

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # it holds a step's values

    def close(self) -> None:
        """Ends the threads once they are idle."""
        for _ in range(self._started):
            self._tasks.put(None)


def run_parallel(
    executor: Executor, bound: Bound, overlap: Overlap, helpers: Helpers, feeds: Sequence[Any]
) -> Sequence[Any]:
    """Runs one step, its heavy parts on several threads.

    Results are those of the straight line: the order of ops with effects, and of any two that
    depend on each other, is kept.

    Raises:
        OpError: the first error of a step; steps that had not begun by then do not run.
    """
    run = _Run(executor, bound, overlap, helpers, feeds)
    run.lead()
    if isinstance(run.error, ClaimError) and run.error.at is not None:
        run.error.ran, run.error.values = run.ran, run.values
    if run.error is not None:
        raise run.error
    return bound.fetched(run.values)


class _Run:
    """One step. `ready` steps are the caller's to run, `heavy` ones anybody's."""

    def __init__(
        self, executor: Executor, bound: Bound, overlap: Overlap, helpers: Helpers,
        feeds: Sequence[Any],
    ) -> None:  # fmt: skip
        self.executor = executor
        self.schedule = bound.schedule
        self.overlap = overlap
        self.helpers = helpers
        self.values = bound.initial(feeds)
        self.waiting = list(overlap.waiting)
        self.uses = overlap.uses.copy()
        self.uses.update(self.schedule.fetches)
        self.ready: list[int] = []
        self.heavy: list[int] = []
        self.left = len(self.waiting)
        self.ran: set[int] = set()
        self.running = 0
        self.error: BaseException | None = None
        self.changed = threading.Condition()
        for i, count in enumerate(self.waiting):
            if count == 0:
                self._push(i)

    def lead(self) -> None:
        """The caller's part: everything that helpers do not take."""
        try:
            self._lead()
        except BaseException as e:
            # Ctrl-C, while it waited: helpers begin nothing more.
            with self.changed:
                self.error = self.error or e
            raise

    def _lead(self) -> None:
        self._summon(len(self.heavy))
        while True:
            with self.changed:
                while not (self.ready or self.heavy) and self._going():
                    self.changed.wait(patience())
                if not self._going():
                    # A step that has begun may still write to what the caller gave.
                    while self.running:
                        self.changed.wait(patience())
                    return
                i = heapq.heappop(self.ready or self.heavy)
                self.running += 1
            self._one(i)

    def help(self) -> None:
        """A helper's part: one heavy step, if one is still to be had."""
        with self.changed:
            if not self.heavy or not self._going():
                return
            i = heapq.heappop(self.heavy)
            self.running += 1
        self._one(i)

    def _going(self) -> bool:
        return self.left > 0 and self.error is None

    def _push(self, i: int) -> bool:
        """Whether the step, which is ready now, is one for helpers."""
        heavy = i in self.overlap.heavy
        heapq.heappush(self.heavy if heavy else self.ready, i)
        return heavy

    def _summon(self, count: int) -> None:
        for _ in range(count):
            # Limits, a deadline: all that the step's own thread knows.
            self.helpers.ask(functools.partial(contextvars.copy_context().run, self.help))

    def _one(self, i: int) -> None:
        try:
            # Planned buffers assume the straight order, so results get their own here.
            results = self.executor.one(i, self.values, planned=False)
        except BaseException as e:
            if isinstance(e, RestartError):
                # Steps that come later in the straight line may have run already.
                e.again = e.again and not any(map(has_effect, self.schedule.steps))
            with self.changed:
                if isinstance(e, ClaimError) and e.at is not None:
                    outputs = self.schedule.steps[i].outputs
                    self.values.update(zip(outputs, e.results, strict=True))
                    self.ran.add(i)
                self.running -= 1
                # The first error is the step's; those of others that were under way are not told.
                self.error = self.error or e
                self.changed.notify_all()
            return
        self._done(i, results)

    def _done(self, i: int, results: Sequence[Any]) -> None:
        step, summoned = self.schedule.steps[i], 0
        with self.changed:
            self.values.update(zip(step.outputs, results, strict=False))
            for slot in step.inputs:
                self.uses[slot] -= 1
                if not self.uses[slot]:
                    del self.values[slot]
            self.left -= 1
            self.ran.add(i)
            self.running -= 1
            for follower in self.overlap.followers[i]:
                self.waiting[follower] -= 1
                if self.waiting[follower] == 0:
                    summoned += self._push(follower)
            self.changed.notify_all()
        self._summon(summoned)
