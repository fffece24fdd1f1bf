"""Steps that may take only so long."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opdock import errors
from opdock.runtime.cancellation import Cancellation, current
from opdock.util.threads import begin

allowance: contextvars.ContextVar[int] = contextvars.ContextVar("opdock_allowance", default=0)
"""Milliseconds that others may take to prepare the step that this thread is about to run; 0 if its
RunOptions have no limit."""


@contextlib.contextmanager
def allowed(options: Any) -> Iterator[None]:
    """While it lasts, what is prepared is for a step under these RunOptions, or None."""
    before = allowance.set(getattr(options, "timeout_in_ms", 0))
    try:
        yield
    finally:
        allowance.reset(before)


def with_deadline(
    timeout_ms: int, run: Callable[[], Sequence[Any]], late: Callable[[], str] = str
) -> Sequence[Any]:
    """`run()`, or DeadlineExceededError when it takes longer than `timeout_ms`.

    What the step waits for it does not wait for any longer, and its loops end. An op that computes
    goes on in its thread until it returns, as Python threads cannot be stopped.

    Args:
        timeout_ms: how long.
        run: the step.
        late: says what the step is waiting for, where more is known than that it is.
    """
    box: dict[str, Any] = {}
    step = Cancellation("The step was cancelled: its time was over.")

    def work() -> None:
        current.set((step,))
        try:
            box["value"] = run()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=work, daemon=True, name="opdock-step")
    begin(thread)
    try:
        thread.join(timeout_ms / 1000)
    except BaseException:
        # Ctrl-C, which interrupts the caller alone.
        step.cancel()
        raise
    if thread.is_alive():
        awaited = late()
        step.cancel()
        raise errors.DeadlineExceededError(
            None, None, f"Timed out waiting for notification ({timeout_ms} ms).{awaited}"
        )
    if "error" in box:
        raise box["error"]
    value: Sequence[Any] = box["value"]
    return value
