"""Steps that may take only so long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from opdock import errors


def with_deadline(timeout_ms: int, run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """`run()`, or DeadlineExceededError when it takes longer than `timeout_ms`.

    The step goes on in its thread until its op returns, as Python threads cannot be stopped.
    """
    box: dict[str, Any] = {}

    def work() -> None:
        try:
            box["value"] = run()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=work, daemon=True, name="opdock-step")
    thread.start()
    thread.join(timeout_ms / 1000)
    if thread.is_alive():
        raise errors.DeadlineExceededError(
            None, None, f"Timed out waiting for notification ({timeout_ms} ms)."
        )
    if "error" in box:
        raise box["error"]
    value: Sequence[Any] = box["value"]
    return value
