"""`tf.train.basic_train_loop`: steps under a supervisor until it says to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import errors
from opdock.train.loops.supervisor import Supervisor

__all__ = ["basic_train_loop"]


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Any = None,
    kwargs: Any = None,
    master: str = "",
) -> None:
    """Calls a function for each step; begins again in a new session after an AbortedError.

    Args:
        supervisor: runs the session.
        train_step_fn: called as `train_step_fn(session, *args, **kwargs)`.
        args, kwargs: further arguments for it.
        master: the session's target.
    """
    while True:
        try:
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *(args or ()), **(kwargs or {}))
        except errors.AbortedError:
            continue
        return
