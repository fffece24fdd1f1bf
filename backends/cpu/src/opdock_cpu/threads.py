"""How many threads one op may use: a setting of the process, as in TensorFlow."""

from __future__ import annotations

import functools
import os

__all__ = ["threads", "use_threads"]

_limit = 0


def use_threads(count: int) -> None:
    """Limits kernels that are bound from now on to `count` threads; 0 lifts the limit."""
    global _limit
    _limit = count


def threads() -> int:
    """How many threads a large op gets."""
    return _limit or _processors()


@functools.cache
def _processors() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if asked.isdigit() and int(asked):
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
