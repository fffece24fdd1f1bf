"""Signal handlers in Python: whether any may come, and what one has raised."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from types import CodeType, TracebackType
from typing import Any, Final

__all__ = ["SIGNALS", "handlers_may_come", "of_handler"]

_ERRORS: Final = {"ABRT", "BUS", "FPE", "ILL", "KILL", "SEGV", "STKFLT", "STOP", "SYS", "TRAP"}
SIGNALS: Final = tuple(
    int(s) for s in signal.Signals if s.name[3:] not in _ERRORS and not s.name.startswith("SIGRT")
)
"""Those that are sent to have a program do something."""
# `signal.getsignal` makes a member of an enumeration of each answer: fifty times as long.
_handler_of: Final[Callable[[int], Any]] = import_module("_signal").getsignal


def handlers_may_come() -> bool:
    """Whether this thread runs signal handlers in Python, other than what raises at Ctrl-C."""
    if threading.get_ident() != threading.main_thread().ident:
        return False
    for handler in map(_handler_of, SIGNALS):
        if not isinstance(handler, int) and handler not in (None, signal.default_int_handler):
            return True
    return False


def of_handler(error: BaseException | None) -> bool:
    """Whether an exception comes from a signal handler in Python, or from what that called."""
    if error is None or not handlers_may_come():
        return False
    handlers = set(_codes_of_handlers())
    return any(code in handlers for code in _codes(error.__traceback__))


def _codes_of_handlers() -> Iterator[CodeType]:
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
