"""Threads where the system may have no room for another: in a container, say, or under a limit."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Final

from opdock import errors

__all__ = ["begin", "interrupt", "on_kept_thread", "others"]

_OWN: Final = "opdock"
"""How the names of threads begin that call nothing of a user's but the functions of a step."""
_KEPT: Final = 5.0
"""Seconds for which a thread without work is kept."""


def others() -> bool:
    """Whether there are threads, this one aside, that may do whatever they like: not opdock's."""
    if threading.active_count() == 1:
        return False
    mine = threading.current_thread()
    return any(t is not mine and not t.name.startswith(_OWN) for t in threading.enumerate())


def interrupt(thread: int, error: BaseException | None = None) -> None:
    """Has a thread raise an exception, as soon as it is in Python code.

    Args:
        thread: its `threading.get_ident()`. It has to be running, and to expect this.
        error: the exception; a KeyboardInterrupt of its own if there is none.
    """
    # ctypes is loaded by NumPy as a rule, but not by everybody.
    import ctypes

    # Python wants a class and calls it, and what it gives need not be new.
    kind = KeyboardInterrupt if error is None else type(error)
    again = type(kind.__name__, (kind,), {"__new__": lambda *_: error or kind()})
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in(ctypes.c_ulong(thread), ctypes.py_object(kind if error is None else again))


def begin(thread: threading.Thread) -> None:
    """Starts a thread.

    Raises:
        ResourceExhaustedError: the system has no room for it.
    """
    try:
        thread.start()
    except RuntimeError as e:
        raise errors.ResourceExhaustedError(
            None, None,
            f"No thread could be started ({e}), beside the {threading.active_count()} of this "
            "process. What limits them is RLIMIT_NPROC, a container's limit of processes, and the "
            "memory for their stacks (threading.stack_size).",
        ) from e  # fmt: skip


class _Kept(threading.Thread):
    """A thread that does one piece of work after the other."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name=_OWN)
        self.given: queue.SimpleQueue[_Work] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                name, work, over = self.given.get(timeout=_KEPT)
            except queue.Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # somebody has just taken it, with a piece of work
                    continue
                return
            self.name = name
            work()
            # Whoever waits for it may have the next piece at once.
            _idle.append(self)
            over()
            del work, over  # they hold a step's values


_Work = tuple[str, Callable[[], None], Callable[[], None]]
_idle: Final[list[_Kept]] = []

if hasattr(os, "register_at_fork"):
    # A child has none of its parent's threads.
    os.register_at_fork(after_in_child=_idle.clear)


def on_kept_thread(name: str, work: Callable[[], None], over: Callable[[], None]) -> None:
    """Begins some work on a thread that is kept for a while, for what comes next.

    Args:
        name: what the thread is called meanwhile.
        work: what it does; it raises nothing.
        over: tells of the end; by then the thread can be had for other work.

    Raises:
        ResourceExhaustedError: the system has no room for another thread.
    """
    # A signal handler may come between a look at the list and what is taken from it.
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Kept()
        begin(thread)
    thread.given.put((name, work, over))
