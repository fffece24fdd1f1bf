"""A workload in a session of a TensorFlow 1 library, and its steps, timed one by one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from .agree import apart, digest
from .spec import CHECKED, Workload

__all__ = ["Steps", "error"]


class Steps:
    """The steps of one workload.

    Args:
        tf: the library, a module with TensorFlow 1's names.
        workload: what to run.
        data: what its `inputs` gave.
        device: where to place what names no device, or None.
        threads: of an op, and how many ops may run at once; None for the library's own choice.
        clock: what tells seconds.

    Attributes:
        session: it runs in this one; None for a workload that builds graphs of its own.
        fetches, feeds: what a step fetches, and the first step's feeds.
    """

    def __init__(
        self, tf: Any, workload: Workload, data: SimpleNamespace, device: str | None = None,
        threads: int | None = None, clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        self._clock = clock
        self.session: Any = None
        self.fetches: Any = None
        self.feeds: Mapping[Any, Any] = {}
        graph = tf.Graph()
        with graph.as_default(), tf.device(device):
            program = workload.program(tf, data)
            self._own = program.step
            if program.step is not None:
                return
            self.session = tf.Session(graph=graph, config=config(tf, threads))
            if tf.global_variables():
                self.session.run(tf.global_variables_initializer())
        self.fetches, self.feeds = program.fetches, dict(program.feeds[0])
        run, fetches = self.session.run, program.fetches
        if len(program.feeds) == 1:
            feed = dict(program.feeds[0])
            self._step: Callable[[], Any] = lambda: run(fetches, feed)
        else:
            feeds = itertools.cycle([dict(f) for f in program.feeds])
            self._step = lambda: run(fetches, next(feeds))

    def timed(self) -> tuple[float, Any]:
        """Seconds and values of one step."""
        if self._own is not None:
            return self._own(self._clock)
        begin = self._clock()
        value = self._step()
        return self._clock() - begin, value

    def close(self) -> None:
        """Closes the session."""
        if self.session is not None:
            self.session.close()


def config(tf: Any, threads: int | None) -> Any:
    """A session's configuration: ops that the device lacks run elsewhere."""
    made = tf.ConfigProto(allow_soft_placement=True)
    if threads is not None:
        made.intra_op_parallelism_threads = made.inter_op_parallelism_threads = threads
    return made


def error(
    timed: Callable[[], tuple[float, Any]], workload: Workload, data: SimpleNamespace
) -> float:
    """How far the first steps are from the right answer, in parts of an array's largest value."""
    mine = [digest(timed()[1]) for _ in range(CHECKED)]
    return max(apart(a, digest(b)) for a, b in zip(mine, workload.answer(data), strict=False))
