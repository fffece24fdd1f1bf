"""Which task of a cluster this thread works for, while `run_distribute_coordinator` runs it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["get_current_worker_context", "working_for"]

_here = threading.local()


def get_current_worker_context() -> Any:
    """The `WorkerContext` of the function that runs in this thread; None outside of one."""
    return getattr(_here, "context", None)


@contextlib.contextmanager
def working_for(context: Any) -> Iterator[None]:
    """Inside, this thread works for a task.

    Args:
        context: the task's `WorkerContext`.

    Raises:
        ValueError: the thread works for a task already.
    """
    if get_current_worker_context() is not None:
        raise ValueError(
            "You cannot run distribute coordinator in a `worker_fn`, which was asked for by the "
            f"function of {context}"
        )
    _here.context = context
    try:
        yield
    finally:
        _here.context = None
