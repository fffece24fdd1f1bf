"""GNU's OpenMP runtime, which oneDNN's build for it uses too: one pool of threads for both."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from functools import cache

from opdock_cpu.jit.llvm import define_symbol
from opdock_cpu.threads import short_waits

__all__ = ["threads_work"]

_NEEDED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
_forked = False


def _after_fork() -> None:
    # The child has none of the parent's threads, and the runtime would wait for them for ever.
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _found() -> bool:
    name = ctypes.util.find_library("gomp") or "libgomp.so.1"
    try:
        with short_waits():
            library = ctypes.CDLL(name)
        for function in _NEEDED:
            address = ctypes.cast(getattr(library, function), ctypes.c_void_p).value
            define_symbol(function, address or 0)
    except (OSError, AttributeError):
        return False
    return True


def threads_work() -> bool:
    """Whether generated code can start threads; else it runs on the caller's."""
    return _found() and not _forked
