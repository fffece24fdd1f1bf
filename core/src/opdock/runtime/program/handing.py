"""Calls of a user's functions on threads that are kept for them.

A Python function may wait for what another op of its step does, which only the user knows. So where
others could do something for it, it runs on a thread of its own while the step's waits for it: a
function that computes is waited for, as if it ran in its place; one that does nothing for a while
is taken to wait, and the step goes on without it.
"""

from __future__ import annotations

import contextvars
import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock.runtime.cancellation import PostponedError
from opdock.util.threads import begin

__all__ = ["GoingOnError", "Handed", "hand_over"]

_LOOK: Final = 0.02
"""Seconds after which a function that has used no processor time is taken to wait."""
_BUSY: Final = 0.1
"""The part of that time for which one that computes has a processor at the least."""
_KEPT: Final = 5.0
"""Seconds for which a thread without work is kept."""


class Handed:
    """A call on a thread of its own."""

    def __init__(self, call: Callable[..., Any], inputs: Sequence[Any]) -> None:
        run = contextvars.copy_context().run
        self._work: Callable[[], Any] | None = functools.partial(run, call, *inputs)
        self._done = threading.Lock()
        self._done.acquire()
        self._clock: int | None = None
        self._thread = 0
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Makes the call, on the thread that has taken it, which is to tell of its end."""
        work, self._work = self._work, None
        assert work is not None
        # Where threads have no clocks of their own, every function is soon taken to wait.
        clock = getattr(time, "pthread_getcpuclockid", None)
        self._clock = None if clock is None else clock(threading.get_ident())
        self._thread = threading.get_native_id()
        try:
            self._result = work()
        except BaseException as e:  # what asked for the call gets it
            self._error = e

    def end(self) -> None:
        """Tells that the call is over."""
        self._done.release()

    def ends(self) -> bool:
        """Waits for the end of the call; False once it is the call that waits."""
        used = 0.0
        while not self._done.acquire(timeout=_LOOK):
            before, used = used, self._used()
            if used - before < _LOOK * _BUSY and not self._queues():
                return False
        self._done.release()
        return True

    def _queues(self) -> bool:
        """Whether the thread is ready to run, and waits for a processor alone, where Linux tells.

        On a busy machine a function that computes may have had none for a while.
        """
        try:
            with open(f"/proc/self/task/{self._thread}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()
        except OSError:
            return False
        return state[:1] == [b"R"]

    def _used(self) -> float:
        if self._clock is None:
            return 0.0
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # the thread has ended in the meantime
            return 0.0

    def outcome(self) -> Any:
        """The result, once there is one; raises what the call raised."""
        with self._done:
            if self._error is not None:
                raise self._error
            return self._result


class GoingOnError(PostponedError):
    """A call that was handed over waits: the rest of its step is not to wait for it."""

    def __init__(self, handed: Handed) -> None:
        super().__init__()
        self.handed = handed


class _Kept(threading.Thread):
    """A thread that takes one call after the other."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="opdock-user")
        self.calls: queue.SimpleQueue[Handed] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                handed = self.calls.get(timeout=_KEPT)
            except queue.Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # somebody has just taken it, with a call
                    continue
                return
            handed.run()
            # Whoever waits for it may have the next call at once.
            _idle.append(self)
            handed.end()
            del handed  # it holds a step's values


_idle: Final[list[_Kept]] = []


def hand_over(call: Callable[..., Any], inputs: Sequence[Any]) -> Handed:
    """Begins a call on a thread of its own.

    Raises:
        ResourceExhaustedError: the system has no room for another thread.
    """
    handed = Handed(call, inputs)
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Kept()
        begin(thread)
    thread.calls.put(handed)
    return handed


if hasattr(os, "register_at_fork"):
    # A child has none of its parent's threads.
    os.register_at_fork(after_in_child=_idle.clear)
