"""How many threads one op may use: a setting of the process, as in TensorFlow."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator

__all__ = ["short_waits", "threads", "use_threads"]

_limit = 0
_SPINS = 5000
"""Turns of a waiting thread, some tens of microseconds: about what it takes to wake one."""


def use_threads(count: int) -> None:
    """Limits kernels that are bound from now on to `count` threads; 0 lifts the limit."""
    global _limit
    _limit = count


def threads() -> int:
    """How many threads a large op gets."""
    return _limit or _processors()


@contextlib.contextmanager
def short_waits() -> Iterator[None]:
    """While a library loads GNU's OpenMP runtime, tells it to put idle threads to sleep soon.

    Left alone, a thread that has done its share spins for milliseconds, on the very core that
    NumPy's BLAS, Python or another process wants. What the user's environment says comes first;
    the runtime reads the setting once, so children do not inherit it.
    """
    chosen = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
    if chosen:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = str(_SPINS)
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


@functools.cache
def _processors() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if asked.isdigit() and int(asked):
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
