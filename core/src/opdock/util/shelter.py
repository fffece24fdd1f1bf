"""Work that no signal handler comes into: where one may come, another thread does it.

Python runs signal handlers in the main thread, between any two instructions, and what the thread
was at stands still until the handler returns. One that runs a step, to save a checkpoint say, would
find a module half imported or an iterator in the middle of an element, and cannot wait for either:
nobody goes on with it. Where another thread does the work, the handler waits like anybody else.
"""

from __future__ import annotations

import contextvars
import functools
import importlib
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, ParamSpec, TypeVar

from opdock import errors
from opdock.util.handlers import handlers_may_come
from opdock.util.threads import on_kept_thread

__all__ = ["ShelteredLock", "shelter", "sheltered"]

P = ParamSpec("P")
T = TypeVar("T")

_LOADING: Final[CodeType] = importlib._bootstrap._load_unlocked.__code__  # type: ignore[attr-defined]
"""What runs while a module's code does, and has the lock of that module."""


def shelter(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives or raises; done by another thread while signal handlers may come here.

    The caller must hold no lock that the work takes: who is importing a module has that module's,
    and does the work itself. A handler that raises ends the waiting, not the work.
    """
    if not handlers_may_come() or _imports():
        return work(*args, **kwargs)
    task = _Task(functools.partial(work, *args, **kwargs))
    try:
        on_kept_thread("opdock-shelter", task.run, task.done)
    except errors.ResourceExhaustedError:
        return work(*args, **kwargs)  # no room for a thread: then as if there were no handlers
    result: T = task.result()
    return result


def _imports() -> bool:
    """Whether this thread is in the middle of an import."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is _LOADING:
            return True
        frame = frame.f_back
    return False


def sheltered(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose calls are done in `shelter`."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return shelter(function, *args, **kwargs)

    return call


class ShelteredLock:
    """A lock under which no signal handler comes: it would wait for what it has interrupted."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holder: int | None = None

    def within(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` gives or raises, in `shelter`; whoever has the lock goes on in its place."""
        if self._holder == threading.get_ident():
            return work(*args, **kwargs)
        return shelter(self._locked, functools.partial(work, *args, **kwargs))

    def _locked(self, work: Callable[[], T]) -> T:
        with self._lock:
            before = self._holder
            try:
                self._holder = threading.get_ident()
                return work()
            finally:
                self._holder = before


class _Task:
    """A call, done in the context of whoever asks for it: its deadline, its limits."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work: Callable[[], Any] | None = work
        self._context = contextvars.copy_context()
        self._value: Any = None
        self._error: BaseException | None = None
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> None:
        """Does it; lets go of all that it was given."""
        work, self._work = self._work, None
        assert work is not None
        try:
            self._value = self._context.run(work)
        except BaseException as e:
            self._error = e.with_traceback(e.__traceback__ and e.__traceback__.tb_next)

    def done(self) -> None:
        """Wakes who waits."""
        self._running.release()

    def result(self) -> Any:
        """What came of it, once it is done; signal handlers run meanwhile."""
        self._running.acquire()
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error  # it holds this frame
