"""Ops of one step that wait for other steps, and may wait for each other.

A step may put into a queue that is full and take from it: whichever came first on a single thread
would wait for ever. So the first that would have to wait gives up its turn, and from there on those
that wait do so on threads of their own, while the caller's thread goes on with the rest. Of a
user's function nobody knows what it waits for: it is handed over where later ops might be that.
"""

from __future__ import annotations

import contextvars
import functools
import queue
import threading
from collections.abc import Callable
from typing import Any

from opdock import errors
from opdock.compiler.emit.overlap import calls_user, dependencies
from opdock.compiler.emit.schedule import Step
from opdock.runtime.cancellation import Cancellation, current, patience, postponable
from opdock.runtime.handing import GoingOnError, Handed, hand_over
from opdock.runtime.program.bind import Bound
from opdock.runtime.program.claims import ClaimError
from opdock.runtime.program.executor import Executor
from opdock.util.threads import begin

__all__ = ["Waiting", "waiting_of"]

Call = Callable[..., Any]
_Outcome = tuple[int, Any, BaseException | None]


class Waiting:
    """What a program does when one of several ops would wait.

    Args:
        executor: runs single steps.
        bound: the program.
        needs: for each step those before it that it cannot do without.
        leading: the calls of a user's functions after which there is something that might wait,
            and does not need them.
        session: whose end leaves those behind.
    """

    def __init__(
        self, executor: Executor, bound: Bound, needs: list[set[int]], leading: set[int],
        session: Cancellation,
    ) -> None:  # fmt: skip
        self._executor, self._bound, self._needs = executor, bound, needs
        self._leading, self._session = leading, session
        self._waits = [_waits(step) for step in bound.schedule.steps]

    @property
    def first(self) -> int:
        """The first step that may wait."""
        return self._waits.index(True)

    def polite(self) -> list[Call]:
        """The calls of the straight line: those that would wait raise PostponedError instead."""
        steps, calls = self._bound.schedule.steps, list(self._bound.calls)
        for i, step in enumerate(steps):
            if step.node.traits.blocks:
                calls[i] = _polite(calls[i])
            elif i in self._leading:
                calls[i] = _handing_over(calls[i], self._session)
        return calls

    def go_on(self, start: int, values: dict[int, Any], begun: Handed | None = None) -> None:
        """Runs the steps from one on, those that wait on threads, and adds their results.

        Args:
            start: the first step.
            values: what there is by now.
            begun: the call of the first step, if it goes on already.

        Raises:
            OpError: the first that a step raised; the waiting of the others was ended.
        """
        count = len(self._needs)
        missing = {i: {n for n in self._needs[i] if n >= start} for i in range(start, count)}
        step = Cancellation("The step was cancelled: another of its operations failed.")
        done: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
        threads: list[threading.Thread] = []
        running = 0
        stray: ClaimError | None = None
        if begun is not None:
            del missing[start]
            threads.append(
                self._begin(start, lambda: self._taken(start, begun, values), step, done)
            )
            running += 1
        try:
            while missing or running:
                ready = [i for i, needs in missing.items() if not needs]
                # What waits begins first, so that it does while the rest is computed.
                for i in (i for i in ready if self._waits[i]):
                    del missing[i]
                    work = functools.partial(self._one, i, values)
                    threads.append(self._begin(i, work, step, done))
                    running += 1
                now = next((i for i in ready if not self._waits[i]), None)
                if now is not None:
                    del missing[now]
                    try:
                        self._finish(now, self._one(now, values), values, missing)
                    except ClaimError as e:
                        self._apart(e, values)
                        stray = stray or e
                    continue
                if stray is not None and not running:
                    stray.ran = set(range(count)) - missing.keys()
                    raise stray
                try:
                    i, results, error = done.get(timeout=patience())
                except queue.Empty:
                    continue
                running -= 1
                if isinstance(error, ClaimError):
                    self._apart(error, values)
                    stray = stray or error
                    continue
                if error is not None:
                    raise error
                self._finish(i, results, values, missing)
        except BaseException as e:
            step.cancel()
            # A user's function cannot be cancelled: a step ends with it, but at once when its
            # session is closed, and with a Ctrl-C.
            if isinstance(e, Exception) or not any(map(calls_user, self._bound.schedule.steps)):
                for thread in threads:
                    thread.join()
            raise

    def _begin(
        self, i: int, make: Callable[[], Any], step: Cancellation,
        done: queue.SimpleQueue[_Outcome],
    ) -> threading.Thread:  # fmt: skip
        """A thread that makes the results of a step and tells what came of it."""

        def work() -> None:
            current.set((*current.get(), step))
            try:
                done.put((i, make(), None))
            except BaseException as e:
                done.put((i, (), e))

        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(work,), daemon=True, name="opdock-wait")
        begin(thread)
        return thread

    def _one(self, i: int, values: dict[int, Any]) -> Any:
        return self._executor.one(i, values, False)

    def _taken(self, i: int, begun: Handed, values: dict[int, Any]) -> Any:
        """The results of a step whose call goes on elsewhere."""
        try:
            return self._executor.results(self._bound.schedule.steps[i], begun.outcome())
        except Exception as e:
            return self._instead(e, i, values)

    def _instead(self, error: Exception, i: int, values: dict[int, Any]) -> Any:
        own = dict(values)
        self._executor.take_over(error, i, own)
        return [own[s] for s in self._bound.schedule.steps[i].outputs]

    def _apart(self, error: ClaimError, values: dict[int, Any]) -> None:
        """Keeps what a step gave whose users have to be compiled for it: they do not run here."""
        assert error.at is not None
        outputs = self._bound.schedule.steps[error.at].outputs
        values.update(zip(outputs, error.results, strict=True))

    def _finish(
        self, i: int, results: Any, values: dict[int, Any], missing: dict[int, set[int]]
    ) -> None:
        outputs = self._bound.schedule.steps[i].outputs
        values.update(zip(outputs, results, strict=False))
        for needs in missing.values():
            needs.discard(i)


def _polite(call: Call) -> Call:
    def run(*inputs: Any) -> Any:
        before = postponable.set(True)
        try:
            return call(*inputs)
        finally:
            postponable.reset(before)

    return run


def _handing_over(call: Call, session: Cancellation) -> Call:
    def run(*inputs: Any) -> Any:
        try:
            handed = hand_over(call, inputs, session)
        except errors.ResourceExhaustedError:
            # Most functions wait for nothing, and those can do without a thread.
            return call(*inputs)
        if not handed.ends():
            raise GoingOnError(handed)
        return handed.outcome()

    return run


def _waits(step: Step) -> bool:
    return step.node.traits.blocks or calls_user(step)


def waiting_of(
    executor: Executor, bound: Bound, session: Cancellation, overlaps: bool = False
) -> Waiting | None:
    """What a program does about waiting; None where no two of its ops can wait for each other.

    Args:
        executor: runs single steps.
        bound: the program.
        session: ends its steps for good.
        overlaps: whether its heavy steps run on several threads: then a user's functions do not
            count, as they would keep it from that.
    """
    steps = bound.schedule.steps
    counts = [step.node.traits.blocks if overlaps else _waits(step) for step in steps]
    if sum(counts) < 2:
        return None
    needs = dependencies(steps, waits_in_order=False)
    # For each step the ops that wait and that it comes after.
    after: list[set[int]] = []
    seen: set[int] = set()
    # Those that wait and that another one does not need, which comes later.
    before_others: set[int] = set()
    for i, before in enumerate(needs):
        behind = set().union(*(after[n] for n in before))
        behind |= {n for n in before if counts[n]}
        after.append(behind)
        if counts[i]:
            before_others |= seen - behind
            seen.add(i)
    if not before_others:
        return None
    leading = {i for i in before_others if calls_user(steps[i]) and not _has_buffer(steps[i])}
    return Waiting(executor, bound, needs, leading, session)


def _has_buffer(step: Step) -> bool:
    """Whether its call is given a buffer, which the next step of the program takes too."""
    return step.out is not None or (step.node.kernel is not None and step.node.kernel.out)
