"""What ends waiting and loops: a session that closes, or a step whose time is over."""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from opdock import errors
from opdock.util.locks import renew

__all__ = [
    "Cancellation", "PostponedError", "check", "current", "ends_of", "insist", "leavable",
    "patience", "postponable",
]  # fmt: skip

_T = TypeVar("_T")

_LOOK: Final = 0.5
_forked = False
"""Whether this process is a child, which has none of its parent's threads but one."""
_all: Final[set[weakref.ref[Cancellation]]] = set()
"""Those that there are. No WeakSet: steps make some, and what removes them from that is in Python,
which swallows a Ctrl-C that comes there."""


class PostponedError(BaseException):
    """A kernel would have had to wait while the rest of its step could go on; it did nothing.

    No Exception, as it says nothing of the kernel: nobody but the program is to catch it.
    """


class Cancellation:
    """Ends the waiting of all that watch it, once, for good.

    Args:
        text: what those who waited are told.
        final: whether nothing runs after it, so that what cannot be ended is left behind.

    Attributes:
        cancelled: whether the end has come.
        since: when it came, in seconds of the monotonic clock.
    """

    def __init__(self, text: str, final: bool = False) -> None:
        self.text, self.final = text, final
        self.cancelled = False
        self.since: float | None = None
        # Reentrant: the collector may run inside, and a finalizer that it calls may come here.
        self._lock = threading.RLock()
        self._waiting: dict[object, tuple[int, threading.Condition, Callable[[], None]]] = {}
        _all.add(weakref.ref(self, _all.discard))

    def cancel(self) -> None:
        """Ends all waiting, present and future."""
        with self._lock:
            if self.since is None:
                self.since = time.monotonic()
            self.cancelled = True
            waiting = list(self._waiting.values())
        for _, condition, give_up in waiting:
            with condition:
                give_up()
                condition.notify_all()

    @contextlib.contextmanager
    def watched(
        self, condition: threading.Condition, give_up: Callable[[], None]
    ) -> Iterator[None]:
        """While it lasts, `cancel` calls `give_up` under the condition, and notifies it."""
        key = object()
        with self._lock:
            self._waiting[key] = threading.get_ident(), condition, give_up
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[key]

    def forsake(self) -> None:
        """Has threads give up that a child of `fork` lacks, and lets go of what they held."""
        self._lock = threading.RLock()
        mine = threading.get_ident()
        for key, (thread, condition, give_up) in list(self._waiting.items()):
            if thread != mine:
                del self._waiting[key]
                renew(condition)
                with condition:
                    give_up()


def _after_fork() -> None:
    global _forked
    _forked = True
    for ref in tuple(_all):
        if (cancellation := ref()) is not None:
            cancellation.forsake()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


current: contextvars.ContextVar[tuple[Cancellation, ...]] = contextvars.ContextVar(
    "opdock_step", default=()
)
"""What ends the waiting of the step that this thread runs, beside the end of the session."""

postponable: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "opdock_postponable", default=False
)
"""Whether a kernel that would wait is to raise `PostponedError`."""

leavable: contextvars.ContextVar[bool] = contextvars.ContextVar("opdock_leavable", default=False)
"""Whether all that wait for this thread can leave it: so what it calls may take its time."""


def insist(work: Callable[[], _T], prepare: Callable[[], None]) -> _T:
    """The result of some work that cannot be begun twice: its waiting is not postponed.

    Args:
        work: what takes something before it waits.
        prepare: waits for as much of it as it can without taking anything, if that is to be
            postponed.
    """
    if not postponable.get():
        return work()
    prepare()
    before = postponable.set(False)
    try:
        return work()
    finally:
        postponable.reset(before)


def patience() -> float | None:
    """Seconds for which this thread may sleep before it looks around; None for no limit.

    The main thread has a limit: of a Ctrl-C that comes while it falls asleep Python learns when it
    wakes up, and nothing else may ever wake it.
    """
    return _LOOK if threading.current_thread() is threading.main_thread() else None


def _until(deadline: float | None) -> float | None:
    """Seconds for which a thread that waits for a time may sleep."""
    limit = patience()
    if deadline is None:
        return limit
    left = max(deadline - time.monotonic(), 0.0)
    return left if limit is None else min(left, limit)


def ends_of(session: Cancellation) -> tuple[Cancellation, ...]:
    """What ends the step that this thread runs in a session."""
    return session, *current.get()


def check(ends: tuple[Cancellation, ...]) -> None:
    """Raises CancelledError where one of the ends has come."""
    for end in ends:
        if end.cancelled:
            raise errors.CancelledError(None, None, end.text)


def wait(
    session: Cancellation, condition: threading.Condition, ready: Callable[[], bool],
    give_up: Callable[[], None], deadline: float | None = None,
) -> None:  # fmt: skip
    """Waits until `ready()`; the caller holds the condition, which is notified of every change.

    Args:
        session: what ends all waiting in a session.
        condition: the caller's.
        ready: asked under the condition.
        give_up: called under the condition in the moment in which the waiting is cancelled, by
            whoever cancels it, so that nothing is handed to somebody who is no longer there.
        deadline: when `ready` is asked at the latest, in seconds of the monotonic clock; it holds
            from then on.

    Raises:
        CancelledError: the session was closed or the step cancelled before.
        PostponedError: it would wait, and is not to; `give_up` was called.
        FailedPreconditionError: it would wait for ever, in a child of `fork` without other threads.
    """
    if ready():
        return  # before anybody who might cancel is told
    ends = ends_of(session)
    given_up = False

    def leave() -> None:
        nonlocal given_up
        if not given_up and not ready():
            given_up = True
            give_up()

    try:
        with contextlib.ExitStack() as stack:
            for end in ends:
                stack.enter_context(end.watched(condition, leave))
            while True:
                cancelled = next((e for e in ends if e.cancelled), None)
                if cancelled is not None:
                    leave()
                if given_up and cancelled is not None:
                    raise errors.CancelledError(None, None, cancelled.text)
                if ready():
                    return
                if postponable.get():
                    raise PostponedError
                if _forked and deadline is None and threading.active_count() == 1:
                    raise errors.FailedPreconditionError(
                        None, None,
                        "This would wait for ever: the process was forked, and the threads for one "
                        "of which it waits are its parent's. Make the session in the child, or "
                        "start what fills the queue or area there.",
                    )  # fmt: skip
                condition.wait(_until(deadline))
    except BaseException:
        # Ctrl-C among them: nothing is to be handed to somebody who is no longer there.
        leave()
        raise
