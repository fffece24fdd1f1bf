"""How many threads one op may use: what its session says, or what the machine has."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Final

from opdock_cpu import blas
from opdock_cpu.quota import quota

__all__ = ["at_most", "short_waits", "threads", "use_threads"]

_limit: Final[ContextVar[int]] = ContextVar("opdock_cpu_threads", default=0)
_SPINS = 5000
"""Turns of a waiting thread, some tens of microseconds: about what it takes to wake one."""


def use_threads(count: int) -> None:
    """Limits kernels that are bound in this context from now on; 0 lifts the limit."""
    _limit.set(count)


def at_most(count: int) -> AbstractContextManager[None]:
    """Limits kernels that are bound, and BLAS in whatever is computed, to `count` threads.

    Kernels keep to the limit under which they were bound. BLAS has one number of threads for the
    whole process, so while steps of several sessions compute, the lowest of their limits holds.
    """
    return _Within(count)


class _Within(AbstractContextManager[None]):
    __slots__ = ("_blas", "_count", "_token")

    def __init__(self, count: int) -> None:
        self._count, self._blas = count, blas.at_most(count)

    def __enter__(self) -> None:
        self._token = _limit.set(self._count)
        self._blas.__enter__()

    def __exit__(self, *error: object) -> None:
        self._blas.__exit__(None, None, None)
        _limit.reset(self._token)


def threads() -> int:
    """How many threads a large op gets.

    That is the limit, or as many as there are processors to be had: those that the process may run
    on, and no more than its control group pays for. `OMP_NUM_THREADS` bounds both.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    most = int(asked) if asked.isdigit() and int(asked) else 0
    count = _limit.get() or most or _processors()
    return min(count, most) if most else count


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


def _processors() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    share = _quota()
    return cores or 1 if share is None else max(1, min(cores or 1, math.ceil(share)))


# Reading it takes longer than binding many a kernel.
_quota = functools.cache(quota)
