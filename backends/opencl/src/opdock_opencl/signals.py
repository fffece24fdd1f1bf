"""Signals stay the program's while drivers look for their devices.

PoCL's compiler, LLVM, then puts handlers of its own in the place of fifteen, to tidy up after a
crash. They swallow SIGUSR1, and all else that ends or stops a process the first time: a watchdog's
SIGABRT, SIGQUIT, the limit of processor time. LLVM does so once, so it is enough to put back what
was there.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["left_alone"]

_ROOM: Final = 512
"""Bytes that have room for any system's `struct sigaction`, which nobody here looks into."""
_DRIVERS: Final = frozenset({"SIGFPE"})
"""What drivers need: PoCL's kernels divide integers by zero, which ends no program on a GPU."""
_OTHERS: Final = frozenset({"SIGKILL", "SIGSTOP"})


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """Has signals be handled as before when the block is left; a block may be in any thread."""
    before = _actions()
    try:
        yield
    finally:
        after = _actions()
        for number, action in before.items():
            if after[number] != action:
                _system().sigaction(number, ctypes.create_string_buffer(action), None)


def _actions() -> dict[int, bytes]:
    """What the system does at each signal."""
    if sys.platform == "win32":
        return {}
    found = {}
    for number in signal.valid_signals():
        name = number.name if isinstance(number, signal.Signals) else ""
        room = ctypes.create_string_buffer(_ROOM)
        known = name and name not in _DRIVERS | _OTHERS
        if known and _system().sigaction(number, None, room) == 0:
            found[int(number)] = room.raw
    return found


def _system() -> Any:
    return ctypes.CDLL(None)
