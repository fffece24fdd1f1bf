"""Interrupts that Python would swallow.

What a finalizer or a callback of a weak reference raises, Python prints and forgets: Ctrl-C as
well, if it comes while one of them runs.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["kept_interrupts"]


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """In here an interrupt that Python would swallow in this process is raised once more.

    It comes a moment later, in the main thread as ever. For commands: a library leaves the hooks of
    a process to those who own it.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_raise_after, (sys._getframe(),))
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _raise_after(frame: FrameType) -> None:
    """Interrupts the main thread once it has left a frame: within, it would be swallowed again."""
    main = threading.main_thread().ident or 0
    while frame in _frames(sys._current_frames().get(main)):
        time.sleep(0.001)
    signal.pthread_kill(main, signal.SIGINT)  # a signal in earnest, so that waits end as well


def _frames(innermost: FrameType | None) -> Iterator[FrameType]:
    while innermost is not None:
        yield innermost
        innermost = innermost.f_back
