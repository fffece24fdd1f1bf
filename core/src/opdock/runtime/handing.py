"""Calls of a user's functions on threads that are kept for them.

Nobody can end a Python function but itself. So where others could end its step, or do something
that it waits for, it runs on a thread of its own while the step's waits for it. When its session is
closed, the step ends and leaves it behind; what it holds goes when it returns. And of two functions
of one step the first may wait for the second, which only the user knows: one that computes is
waited for, as if it ran in its place; one that does nothing for a while is taken to wait, and the
step goes on without it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from opdock import errors
from opdock.runtime.cancellation import (
    Cancellation,
    PostponedError,
    check,
    current,
    leavable,
    postponable,
    wait,
)  # fmt: skip
from opdock.util.threads import interrupt, on_kept_thread, others

__all__ = ["GoingOnError", "Handed", "apart", "hand_over"]

_T = TypeVar("_T")
_LOOK: Final = 0.02
"""Seconds after which a function that has used no processor time is taken to wait."""
_BUSY: Final = 0.1
"""The part of that time for which one that computes has a processor at the least."""
_GLANCES: Final = 8
_GLANCE: Final = 0.001
"""How often it is looked at whether a thread is ready to run, and seconds from one to the next."""


class Handed:
    """A call on a thread of its own.

    Args:
        call, inputs: what is called.
        session: whose end leaves it behind.
    """

    def __init__(
        self, call: Callable[..., Any], inputs: Sequence[Any], session: Cancellation
    ) -> None:
        context = contextvars.copy_context()
        context.run(leavable.set, True)
        self._session = session
        self._ends = _final(session)
        self._work: Callable[[], Any] | None = functools.partial(context.run, call, *inputs)
        self._changed = threading.Condition()
        self._over = self._interrupted = False
        self._clock: int | None = None
        self._ident = self._thread = 0
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
            try:
                with self._changed:
                    if not self._interrupted:
                        self._ident = threading.get_ident()
                if self._ident:
                    self._result = work()
            except BaseException as e:  # what asked for the call gets it
                self._error = e
            with self._changed:
                self._ident = 0
        except KeyboardInterrupt:
            # It comes once, and now too late. If it came while the lock was taken, nobody misses
            # that: who interrupts has left, and for this thread the lock is reentrant.
            self._ident = 0

    def end(self) -> None:
        """Tells that the call is over."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def ends(self) -> bool:
        """Waits for the end of the call; False once it is the call that waits.

        Raises:
            CancelledError: the session was closed.
        """
        used = 0.0
        with self._interruptible(), self._changed:
            while not self._changed.wait_for(lambda: self._over, _LOOK):
                check(self._ends)
                before, used = used, self._used()
                if used - before < _LOOK * _BUSY and not self._queues():
                    return False
        return True

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """A Ctrl-C for whoever waits is one for the call, as if it ran in its place."""
        try:
            yield
        except KeyboardInterrupt:
            with self._changed:
                if self._ident and not self._interrupted:
                    interrupt(self._ident)
                self._interrupted = True
            raise

    def _queues(self) -> bool:
        """Whether the thread is ready to run, and waits for a processor alone, where Linux tells.

        On a busy machine a function that computes may have had none for a while. Nor is one ready
        that is to get the interpreter next, which who looks has: so it looks more than once.
        """
        for _ in range(_GLANCES):
            try:
                with open(f"/proc/self/task/{self._thread}/stat", "rb") as file:
                    state = file.read().rpartition(b")")[2].split()
            except OSError:
                return False
            if state[:1] == [b"R"] or self._changed.wait(_GLANCE):
                return True
        return False

    def _used(self) -> float:
        if self._clock is None:
            return 0.0
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # the thread has ended in the meantime
            return 0.0

    def outcome(self) -> Any:
        """The result, once there is one; raises what the call raised.

        Raises:
            CancelledError: the session was closed before.
        """
        # Other ends of a step wait for its functions: the session goes on, and would call them
        # again while they run. And what has begun cannot be postponed.
        steps, before = current.set(self._ends[1:]), postponable.set(False)
        try:
            with self._interruptible(), self._changed:
                wait(self._session, self._changed, lambda: self._over, lambda: None)
        finally:
            postponable.reset(before)
            current.reset(steps)
        if self._error is not None:
            raise self._error
        return self._result


class GoingOnError(PostponedError):
    """A call that was handed over waits: the rest of its step is not to wait for it."""

    def __init__(self, handed: Handed) -> None:
        super().__init__()
        self.handed = handed


def hand_over(call: Callable[..., Any], inputs: Sequence[Any], session: Cancellation) -> Handed:
    """Begins a call on a thread of its own.

    Args:
        call, inputs: what is called.
        session: whose end leaves it behind.

    Raises:
        ResourceExhaustedError: the system has no room for another thread.
    """
    handed = Handed(call, inputs, session)
    on_kept_thread("opdock-user", handed.run, handed.end)
    return handed


def apart(call: Callable[[], _T], session: Cancellation) -> _T:
    """The result of a user's function, which is left behind if its session ends before it does.

    It runs in its place, which costs nothing, unless somebody else could close the session.

    Raises:
        CancelledError: the session was closed before the function returned.
    """
    if leavable.get():
        before = leavable.set(False)  # what it runs itself is another matter
        try:
            return call()
        finally:
            leavable.reset(before)
    # What is called after the end is what cleans up.
    if not others() or any(end.cancelled for end in _final(session)):
        return call()
    try:
        handed = hand_over(call, (), session)
    except errors.ResourceExhaustedError:
        return call()
    result: _T = handed.outcome()
    return result


def _final(session: Cancellation) -> tuple[Cancellation, ...]:
    """The ends after which nothing runs, of a session and of what runs this thread's step in it."""
    return session, *(end for end in current.get() if end.final)
