"""Threads where the system may have no room for another: in a container, say, or under a limit."""

from __future__ import annotations

import threading
from typing import Final

from opdock import errors

__all__ = ["begin", "interrupt", "others"]

_OWN: Final = "opdock"
"""How the names of threads begin that call nothing of a user's but the functions of a step."""


def others() -> bool:
    """Whether there are threads, this one aside, that may do whatever they like: not opdock's."""
    if threading.active_count() == 1:
        return False
    mine = threading.current_thread()
    return any(t is not mine and not t.name.startswith(_OWN) for t in threading.enumerate())


def interrupt(thread: int) -> None:
    """Has a thread raise KeyboardInterrupt, as soon as it is in Python code.

    Args:
        thread: its `threading.get_ident()`. It has to be running, and to expect this.
    """
    # ctypes is loaded by NumPy as a rule, but not by everybody.
    import ctypes

    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def begin(thread: threading.Thread) -> None:
    """Starts a thread.

    Raises:
        ResourceExhaustedError: the system has no room for it.
    """
    try:
        thread.start()
    except RuntimeError as e:
        raise errors.ResourceExhaustedError(
            None, None,
            f"No thread could be started ({e}), beside the {threading.active_count()} of this "
            "process. What limits them is RLIMIT_NPROC, a container's limit of processes, and the "
            "memory for their stacks (threading.stack_size).",
        ) from e  # fmt: skip
