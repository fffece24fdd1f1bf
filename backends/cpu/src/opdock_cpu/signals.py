"""Signals beside oneDNN's code, which takes the stack pointer for other things.

Its products of single numbers with AVX-512 do (oneDNN's issue 4845): what the system puts on the
stack for a handler, of Ctrl-C, a timer or a child that has ended, then goes into a matrix or into
the heap. Python's handlers run on a stack of their own where the thread has one, so each thread
that computes with oneDNN gets one; and the threads of OpenMP, which nobody can give one, inherit
that no signal comes to them.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["kept_off", "thread"]

_BYTES: Final = 1 << 16
"""A frame has all registers, 11 KiB with those of AMX, and Python's handlers take little."""
_DISABLED: Final = 2


class _Described(ctypes.Structure):
    """Linux' `stack_t`."""

    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def _setter() -> Any:
    """The system's `sigaltstack`; None on systems that oneDNN has no such code for."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    return getattr(ctypes.CDLL(None), "sigaltstack", None)


_set: Final = _setter()
_NONE: Final = ctypes.pointer(_Described(None, _DISABLED, 0))
_left: Final[list[Any]] = []
"""Stacks of threads that may not be at their end."""


class _Stack:
    """A stack for handlers of the thread that makes it, unless it has one; it ends with that."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._room: Any = None
        before = _Described()
        if _set is not None and _set(None, ctypes.byref(before)) == 0 and before.flags & _DISABLED:
            room = ctypes.create_string_buffer(_BYTES)
            if _set(ctypes.byref(_Described(ctypes.addressof(room), 0, _BYTES)), None) == 0:
                self._room = room

    # What is named here is there too when Python ends and takes modules apart.
    def __del__(
        self, now: Any = threading.get_ident, put: Any = _set, none: Any = _NONE, left: Any = _left
    ) -> None:
        if self._room is None:
            return
        if self._thread == now():
            put(none, None)
        else:
            left.append(self._room)  # its thread may still be there


class _Thread(threading.local):
    """What a thread has, made when it first asks.

    Attributes:
        team: how many threads of OpenMP worked for it last, itself among them; a smaller team ends
            those that it does not need.
    """

    def __init__(self) -> None:
        self._stack = _Stack()
        self.team = 1

    def ready(self) -> None:
        """Nothing, but that the thread has it all by now."""


thread: Final = _Thread()
"""Whoever computes with oneDNN looks at it before."""


@contextlib.contextmanager
def kept_off() -> Iterator[None]:
    """No signal comes to this thread meanwhile, nor ever to those that it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
