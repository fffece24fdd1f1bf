"""Work that no signal handler comes into: where one may come, another thread does it.

Python runs signal handlers in the main thread, between any two instructions, and what the thread
was at stands still until the handler returns. One that runs a step, to save a checkpoint say, would
find a module half imported or an iterator in the middle of an element, and cannot wait for either:
nobody goes on with it. Where another thread does the work, the handler waits like anybody else.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable
from importlib import import_module
from queue import SimpleQueue
from signal import Signals, default_int_handler
from typing import Any, Final, ParamSpec, TypeVar

from opdock import errors
from opdock.util.threads import begin

__all__ = ["handlers_may_come", "shelter", "sheltered"]

P = ParamSpec("P")
T = TypeVar("T")

_ERRORS: Final = {"ABRT", "BUS", "FPE", "ILL", "KILL", "SEGV", "STKFLT", "STOP", "SYS", "TRAP"}
_SIGNALS: Final = tuple(
    int(s) for s in Signals if s.name[3:] not in _ERRORS and not s.name.startswith("SIGRT")
)
"""Those that are sent to have a program do something."""
# `signal.getsignal` makes a member of an enumeration of each answer: fifty times as long.
_handler_of: Final[Callable[[int], Any]] = import_module("_signal").getsignal


def handlers_may_come() -> bool:
    """Whether this thread runs signal handlers in Python, other than what raises at Ctrl-C."""
    if threading.get_ident() != threading.main_thread().ident:
        return False
    for handler in map(_handler_of, _SIGNALS):
        if not isinstance(handler, int) and handler not in (None, default_int_handler):
            return True
    return False


def shelter(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives or raises; done by another thread while signal handlers may come here.

    The caller must hold no lock that the work takes. A handler that raises ends the waiting, not
    the work.
    """
    if not handlers_may_come():
        return work(*args, **kwargs)
    task = _Task(functools.partial(work, *args, **kwargs))
    try:
        _worker().give(task)
    except errors.ResourceExhaustedError:
        return work(*args, **kwargs)  # no room for a thread: then as if there were no handlers
    result: T = task.result()
    return result


def sheltered(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose calls are done in `shelter`."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return shelter(function, *args, **kwargs)

    return call


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


class _Worker:
    """A thread that does one task after the other."""

    def __init__(self) -> None:
        self._given: SimpleQueue[_Task] = SimpleQueue()
        begin(threading.Thread(target=self._serve, name="opdock-shelter", daemon=True))

    def give(self, task: _Task) -> None:
        """Has it do a task."""
        self._given.put(task)

    def _serve(self) -> None:
        while True:
            task = self._given.get()
            task.run()
            _idle.append(self)  # before anybody wakes who may ask for the next
            task.done()
            del task


_idle: Final[list[_Worker]] = []


def _worker() -> _Worker:
    # A handler may come between a look at the list and what is taken from it.
    try:
        return _idle.pop()
    except IndexError:
        return _Worker()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
