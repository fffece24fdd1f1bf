"""Threads that work beside the steps of a session, and end with it."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final

from opdock import errors
from opdock.runtime import cancellation
from opdock.util.threads import begin

__all__ = ["BackgroundThread", "start"]

_running: Final[weakref.WeakSet[BackgroundThread]] = weakref.WeakSet()
_PATIENCE: Final = 0.5
"""Seconds that a session that closes waits for a user's function to come back."""
_LAST_PATIENCE: Final = 5.0
"""Seconds that the interpreter waits, since nothing of it may be used afterwards."""


class BackgroundThread:
    """A thread whose waiting can be ended.

    Args:
        work: ends when it is done, or with the error by which its waiting was ended.
        name: of the thread, for tools that list threads.
        session: ends it, too.
    """

    def __init__(
        self, work: Callable[[], None], name: str, session: cancellation.Cancellation
    ) -> None:
        self._end = cancellation.Cancellation("The iterator was closed.")
        self._session = session
        self._work = work
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        cancellation.current.set((self._end,))
        cancellation.leavable.set(True)
        with contextlib.suppress(errors.CancelledError):
            self._work()

    def start(self) -> None:
        """Starts the work.

        Raises:
            ResourceExhaustedError: the system has no room for another thread.
        """
        begin(self._thread)
        _running.add(self)

    def stop(self) -> None:
        """Ends what the thread waits for, now and later."""
        self._end.cancel()

    def join(self, patience: float = _PATIENCE) -> None:
        """Waits until the thread has ended, unless this is it; not for ever.

        Args:
            patience: seconds from when it was told, so that many take no longer than one.
        """
        if threading.current_thread() is not self._thread and self._thread.ident is not None:
            told = [end.since for end in (self._end, self._session) if end.since is not None]
            waited = time.monotonic() - min(told) if told else 0.0
            self._thread.join(max(patience - waited, 0.0))


def start(
    work: Callable[[], None], name: str, session: cancellation.Cancellation
) -> BackgroundThread:
    """Starts `work` in a thread that the end of the interpreter stops, if nobody does before."""
    thread = BackgroundThread(work, name, session)
    thread.start()
    return thread


def _stop_all() -> None:
    threads = list(_running)
    for thread in threads:
        thread.stop()
    for thread in threads:
        thread.join(_LAST_PATIENCE)


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):  # a child has none of them
    os.register_at_fork(after_in_child=_running.clear)
