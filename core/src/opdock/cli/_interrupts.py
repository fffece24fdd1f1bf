"""Ctrl-C that is never lost, wherever in the interpreter it arrives.

Python raises KeyboardInterrupt between any two steps of the main thread. In a finalizer or in the
callback of a weak reference, which imports run too, nobody can be told of an exception: Python
prints "Exception ignored in" and goes on, and the user's Ctrl-C has done nothing. Such an interrupt
is sent again, until it arrives where it ends something.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import UnraisableHookArgs

_AGAIN: Final = 0.02  # seconds: by then the main thread has left what cannot be interrupted


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """While in here, an interrupt that Python ignores reaches the main thread a moment later."""
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs, /) -> None:
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            before(ignored)
            return
        timer = threading.Timer(_AGAIN, _interrupt)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _interrupt() -> None:
    # To the thread, not to the process: a system call in which the main thread waits must end.
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)
