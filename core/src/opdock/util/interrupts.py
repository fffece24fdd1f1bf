"""Interrupts that Python would swallow.

What a finalizer or a callback of a weak reference raises, Python prints and forgets: Ctrl-C as
well, and what any other signal handler raises, if it comes while one of them runs.
"""

from __future__ import annotations

import _thread
import functools
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, ParamSpec

from opdock.util.handlers import of_handler
from opdock.util.threads import interrupt

__all__ = ["finalizer", "kept_interrupts"]

P = ParamSpec("P")

_CALLBACKS: Final = weakref.__file__
_PAUSE: Final = 0.001  # seconds between two looks at what the main thread is in


def finalizer(function: Callable[P, None]) -> Callable[P, None]:
    """A finalizer that does all it has to, and what signal handlers raise meanwhile comes after it.

    Args:
        function: called anew where it was interrupted, so that it goes on with what is left.
    """

    # Its code has the name by which finalizers are known. While Python ends, modules are empty.
    @functools.wraps(function)
    def __del__(*args: P.args, **kwargs: P.kwargs) -> None:  # noqa: N807
        while True:
            try:
                return function(*args, **kwargs)
            except BaseException as e:
                if _after is None:
                    return None
                if not _after(e):
                    raise

    return __del__


def _after(error: BaseException) -> bool:
    """Has what a signal handler raised come once more; False where it is an error of another kind.

    It is the same exception, but for a Ctrl-C of Python's own, which comes as a signal: so waits
    end as well.
    """
    if threading.get_ident() != threading.main_thread().ident or sys.is_finalizing():
        return False
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not of_handler(error) and not (own and isinstance(error, KeyboardInterrupt)):
        return False
    signalled = own and type(error) is KeyboardInterrupt
    _thread.start_new_thread(_raise_after, (None, None if signalled else error))
    return True


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """In here an interrupt that Python would swallow in this process is raised once more.

    It comes a moment later, in the main thread as ever. For commands: a library leaves the hooks of
    a process to those who own it.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_raise_after, (sys._getframe(), None))
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _raise_after(frame: FrameType | None, error: BaseException | None) -> None:
    """Interrupts the main thread once it has left a frame, and all that would swallow it again."""
    main = threading.main_thread().ident or 0
    while any(f is frame or _swallows(f) for f in _frames(sys._current_frames().get(main))):
        time.sleep(_PAUSE)
    if error is None:
        signal.pthread_kill(main, signal.SIGINT)  # a signal in earnest, so that waits end as well
    else:
        interrupt(main, error)


def _swallows(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "__del__" or code.co_filename == _CALLBACKS


def _frames(innermost: FrameType | None) -> Iterator[FrameType]:
    while innermost is not None:
        yield innermost
        innermost = innermost.f_back
