"""What counts as a failure of code that is not opdock's own."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import Any

from opdock.util.shelter import handlers_may_come

__all__ = ["failures"]

_ANY = (Exception, SystemExit)
"""What a plugin may raise: one that leaves by `sys.exit` must not end the user's program."""


def failures(*kinds: type[BaseException]) -> tuple[type[BaseException], ...]:
    """What an `except` clause, which asks for it anew each time, catches of what others raise.

    A signal handler runs in the middle of whatever the main thread does. What it raises, say when
    the time that a program has set itself is over, is for that program, and no fault of the code
    that it interrupted: then nothing is caught.

    Args:
        kinds: of exceptions; all that plugins may raise if there is none.
    """
    return () if _is_of_handler(sys.exception()) else kinds or _ANY


def _is_of_handler(error: BaseException | None) -> bool:
    """Whether an exception comes from a signal handler, or from what that called."""
    if error is None or not handlers_may_come():
        return False
    handlers = set(_handlers())
    return any(code in handlers for code in _codes(error.__traceback__))


def _handlers() -> Iterator[CodeType]:
    """The codes of the signal handlers that are written in Python."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if not callable(handler):
            continue
        while isinstance(handler, functools.partial):
            handler = handler.func
        if not hasattr(handler, "__code__"):
            handler = getattr(handler, "__func__", type(handler).__call__)
        code = getattr(handler, "__code__", None)
        if code is not None:
            yield code


def _codes(trace: TracebackType | None) -> Iterator[CodeType]:
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next
