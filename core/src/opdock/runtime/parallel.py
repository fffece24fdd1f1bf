"""Steps on several threads: independent ops run at the same time.

`ConfigProto.inter_op_parallelism_threads` asks for it.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence
from typing import Any

from opdock.compiler.schedule import Step
from opdock.runtime.lost import RestartError, has_effect
from opdock.runtime.program import Program


def run_parallel(program: Program, feeds: Sequence[Any], threads: int) -> Sequence[Any]:
    """Runs one step with up to `threads` ops at a time.

    Results are those of the straight line: the order of ops on one variable, and of any two that
    depend on each other, is kept.
    """
    run = _Run(program, feeds)
    workers = [threading.Thread(target=run.work, daemon=True) for _ in range(threads - 1)]
    for worker in workers:
        worker.start()
    run.work()
    for worker in workers:
        worker.join()
    if run.error is not None:
        raise run.error
    return tuple(run.values[s] for s in program.schedule.fetches)


class _Run:
    def __init__(self, program: Program, feeds: Sequence[Any]) -> None:
        self.program = program
        self.values: dict[int, Any] = dict(program._presets)
        self.values.update(zip(program.schedule.params, feeds, strict=True))
        self.waiting, self.followers = dependencies(program.schedule.steps)
        self.ready = [i for i, n in enumerate(self.waiting) if n == 0]
        heapq.heapify(self.ready)
        self.left = len(self.waiting)
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    def work(self) -> None:
        while True:
            with self.changed:
                while not self.ready and self.left and self.error is None:
                    self.changed.wait()
                if not self.left or self.error is not None:
                    self.changed.notify_all()
                    return
                i = heapq.heappop(self.ready)
            self.one(i)

    def one(self, i: int) -> None:
        step = self.program.schedule.steps[i]
        inputs = [self.values[s] for s in step.inputs]
        try:
            try:
                # Planned buffers assume the straight order, so results get their own here.
                results = self.program._call(i, step, inputs, planned=False)
            except Exception as e:
                results = self.program._instead(e, step, inputs)
        except BaseException as e:
            if isinstance(e, RestartError):
                # Steps that come later in the straight line may have run already.
                e.again = e.again and not any(map(has_effect, self.program.schedule.steps))
            with self.changed:
                self.error = e
                self.changed.notify_all()
            return
        with self.changed:
            self.values.update(zip(step.outputs, results, strict=False))
            self.left -= 1
            for follower in self.followers[i]:
                self.waiting[follower] -= 1
                if self.waiting[follower] == 0:
                    heapq.heappush(self.ready, follower)
            self.changed.notify_all()


def dependencies(steps: list[Step]) -> tuple[list[int], list[list[int]]]:
    """For each step the number of steps it waits for, and those that wait for it."""
    made_by: dict[int, int] = {}
    node_at: dict[Any, int] = {}
    waits: list[set[int]] = []
    last_stateful = -1
    for i, step in enumerate(steps):
        before = {made_by[s] for s in step.inputs if s in made_by}
        before.update(node_at[c] for c in step.node.control if c in node_at)
        if step.kind in ("read", "control") or step.node.stateful:
            # Effects keep the order of the straight line.
            if last_stateful >= 0:
                before.add(last_stateful)
            last_stateful = i
        waits.append(before)
        for s in step.outputs:
            made_by[s] = i
        if step.kind != "read":
            node_at[step.node] = i
    followers: list[list[int]] = [[] for _ in steps]
    for i, before in enumerate(waits):
        for b in before:
            followers[b].append(i)
    return [len(w) for w in waits], followers
