"""A time limit for work that may never end: kernels that loop, wait for a device, or hang in C.

The work runs in a thread of its own, so that whoever waits for it can stop waiting, at the limit or
on Ctrl-C. What stops it depends on where it hangs:

- in Python: an exception is raised in its thread, and the thread ends;
- in C that has released the interpreter's lock (NumPy's loops, ctypes, cffi, drivers): the thread
  is left behind, and what comes next runs in another one;
- in C that holds the lock no Python code of the process runs any more. With `fatal=True` a watchdog
  of `faulthandler`, which needs no lock, prints where all threads are, and ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Final, TypeVar

__all__ = ["Overdue", "Watch", "stopped"]

T = TypeVar("T")

_GRACE: Final = 2.0  # seconds in which interrupted work may clean up
_FATAL: Final = 10.0  # seconds by which the last resort comes after the limit


class Overdue(Exception):
    """Work had not ended within its limit.

    Args:
        limit: the limit in seconds.
        where: the innermost Python frame that it was in.
    """

    def __init__(self, limit: float, where: str) -> None:
        super().__init__(f"still running after {limit:g} s{where and f', in {where}'}")
        self.limit = limit


class _Interrupt(BaseException):
    """Raised in the thread of work that nobody waits for any more; no `except Exception`."""


def stopped(left: int) -> list[str]:
    """What a Markdown report says of a run that was stopped; nothing of one that was not."""
    return (
        [f"**Partial:** the run was stopped; units that did not run: {left}.", ""] if left else []
    )


class Watch:
    """Runs functions one at a time, each in a thread that others wait for.

    Args:
        limit: the seconds that each may take; None for no limit.
        fatal: whether a function that holds the interpreter's lock beyond the limit ends the
            process.

    Attributes:
        left_behind: how many threads are stuck in work that was given up.
    """

    def __init__(self, limit: float | None = None, *, fatal: bool = False) -> None:
        self.limit = limit
        self.left_behind = 0
        self._fatal = fatal and limit is not None
        self._worker: _Worker | None = None

    def run(self, work: Callable[[], T], name: str = "work") -> T:
        """What `work` gives or raises.

        Args:
            work: what to do.
            name: what it is called in the lines of Python that a crash leaves.

        Raises:
            Overdue: it did not end in time.
        """
        worker, self._worker = self._worker or _Worker(), None
        answer = worker.ask(_named(name, work))
        try:
            with self._last_resort():
                done = wait([answer], self.limit).done
        except BaseException:
            self._leave(worker)
            raise
        if not done:
            where = worker.where()
            self._leave(worker)
            assert self.limit is not None
            raise Overdue(self.limit, where)
        self._worker = worker
        found: T = answer.result()
        return found

    def close(self) -> None:
        """Ends the thread, if it is idle."""
        if self._worker is not None:
            self._worker.retire()
            self._worker = None

    def _leave(self, worker: _Worker) -> None:
        if not worker.interrupt():
            self.left_behind += 1

    @contextlib.contextmanager
    def _last_resort(self) -> Iterator[None]:
        if not self._fatal or self.limit is None or sys.__stderr__ is None:
            yield
            return
        faulthandler.dump_traceback_later(self.limit + _FATAL, exit=True, file=sys.__stderr__)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _named(name: str, work: Callable[[], T]) -> Callable[[], T]:
    """`work` in a frame of that name: of a process that ends in C, frames are all that is told."""

    def call() -> T:
        return work()

    call.__code__ = call.__code__.replace(co_name=name)
    return call


class _Worker:
    """A thread that does what it is asked to, until it is retired."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._todo = queue.SimpleQueue()
        # A daemon: the process ends though a thread is stuck.
        self._thread = threading.Thread(target=self._serve, name="opdock-unit", daemon=True)
        self._thread.start()

    def ask(self, work: Callable[[], T]) -> Future[T]:
        answer: Future[T] = Future()
        self._todo.put((work, answer))
        return answer

    def where(self) -> str:
        """The innermost Python frame of what it does, "relu (kernels.py:34)"."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        stack = traceback.extract_stack(frame) if frame is not None else []
        if not stack:
            return ""
        last = stack[-1]
        return f"{last.name} ({Path(last.filename).name}:{last.lineno})"

    def interrupt(self) -> bool:
        """Raises an exception in what it does, and says whether the thread came to an end."""
        assert self._thread.ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self._thread.ident), ctypes.py_object(_Interrupt)
        )
        self.retire()
        self._thread.join(_GRACE)
        return not self._thread.is_alive()

    def retire(self) -> None:
        self._todo.put(None)

    def _serve(self) -> None:
        with contextlib.suppress(_Interrupt):
            while (task := self._todo.get()) is not None:
                work, answer = task
                try:
                    answer.set_result(work())
                except BaseException as error:
                    answer.set_exception(error)
