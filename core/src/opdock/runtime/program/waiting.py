"""Ops of one step that wait for other steps, and may wait for each other.

A step may put into a queue that is full and take from it: whichever came first on a single thread
would wait for ever. So the first that would have to wait gives up its turn, and from there on those
that wait do so on threads of their own, while the caller's thread goes on with the rest.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

from opdock.compiler.emit.overlap import dependencies
from opdock.runtime.cancellation import Cancellation, current, patience, postponable
from opdock.runtime.program.bind import Bound
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
    """

    def __init__(self, executor: Executor, bound: Bound, needs: list[set[int]]) -> None:
        self._executor, self._bound, self._needs = executor, bound, needs
        self._waits = [step.node.traits.blocks for step in bound.schedule.steps]

    @property
    def first(self) -> int:
        """The first step that may wait."""
        return self._waits.index(True)

    def polite(self) -> list[Call]:
        """The calls of the straight line: those that would wait raise PostponedError instead."""
        calls = zip(self._bound.calls, self._waits, strict=True)
        return [_polite(call) if waits else call for call, waits in calls]

    def go_on(self, start: int, values: dict[int, Any]) -> None:
        """Runs the steps from one on, those that wait on threads, and adds their results.

        Raises:
            OpError: the first that a step raised; the waiting of the others was ended.
        """
        count = len(self._needs)
        missing = {i: {n for n in self._needs[i] if n >= start} for i in range(start, count)}
        step = Cancellation("The step was cancelled: another of its operations failed.")
        done: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
        threads: list[threading.Thread] = []
        running = 0
        try:
            while missing or running:
                ready = [i for i, needs in missing.items() if not needs]
                # What waits begins first, so that it does while the rest is computed.
                for i in (i for i in ready if self._waits[i]):
                    del missing[i]
                    threads.append(self._begin(i, values, step, done))
                    running += 1
                now = next((i for i in ready if not self._waits[i]), None)
                if now is not None:
                    del missing[now]
                    self._finish(now, self._executor.one(now, values, False), values, missing)
                    continue
                try:
                    i, results, error = done.get(timeout=patience())
                except queue.Empty:
                    continue
                running -= 1
                if error is not None:
                    raise error
                self._finish(i, results, values, missing)
        except BaseException:
            step.cancel()
            for thread in threads:
                thread.join()
            raise

    def _begin(
        self, i: int, values: dict[int, Any], step: Cancellation,
        done: queue.SimpleQueue[_Outcome],
    ) -> threading.Thread:  # fmt: skip
        """A thread that runs a step and tells what came of it."""

        def work() -> None:
            current.set((*current.get(), step))
            try:
                done.put((i, self._executor.one(i, values, False), None))
            except BaseException as e:
                done.put((i, (), e))

        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(work,), daemon=True, name="opdock-wait")
        begin(thread)
        return thread

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


def waiting_of(executor: Executor, bound: Bound) -> Waiting | None:
    """What a program does about waiting; None where no two of its ops can wait for each other."""
    steps = bound.schedule.steps
    if sum(step.node.traits.blocks for step in steps) < 2:
        return None
    needs = dependencies(steps, waits_in_order=False)
    # For each step the ops that wait and that it comes after.
    after: list[set[int]] = []
    seen: set[int] = set()
    independent = False
    for i, before in enumerate(needs):
        behind = set().union(*(after[n] for n in before))
        behind |= {n for n in before if steps[n].node.traits.blocks}
        after.append(behind)
        if steps[i].node.traits.blocks:
            independent = independent or bool(seen - behind)
            seen.add(i)
    return Waiting(executor, bound, needs) if independent else None
