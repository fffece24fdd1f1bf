"""Threads where the system may have no room for another: in a container, say, or under a limit."""

from __future__ import annotations

import threading

from opdock import errors

__all__ = ["begin"]


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
