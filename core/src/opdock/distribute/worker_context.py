"""Which task of a cluster this thread works for, while `run_distribute_coordinator` runs it."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["begin", "end", "get_current_worker_context"]

_here = threading.local()


def get_current_worker_context() -> Any:
    """The `WorkerContext` of the function that runs in this thread; None outside of one."""
    return getattr(_here, "context", None)


def begin(context: Any) -> None:
    """Has this thread work for a task.

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


def end() -> None:
    """Has this thread work for no task."""
    _here.context = None
