"""Checks of values in a trace: who traces takes them along, and looks when there are values."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["defer", "deferring"]

_tracing = threading.local()


@contextlib.contextmanager
def deferring() -> Iterator[list[Any]]:
    """Collects the checks of kernels that are traced in this thread: true means an error."""
    outer, _tracing.checks = getattr(_tracing, "checks", None), []
    try:
        yield _tracing.checks
    finally:
        _tracing.checks = outer


def defer(xp: Any, condition: Any) -> bool:
    """Keeps a check for whoever traces; it counts as passed.

    Where nobody would look at it, the condition is asked for its value: the tracer's own error then
    says that the function has to run with values.
    """
    checks = getattr(_tracing, "checks", None)
    if checks is None:
        return bool(condition)
    checks.append(xp.any(condition))
    return False


def is_deferring() -> bool:
    """Whether somebody traces in this thread and takes checks along."""
    return getattr(_tracing, "checks", None) is not None
