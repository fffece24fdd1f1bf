"""Work in threads, for tests of what waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import opdock as tf

WAIT = 600.0
"""Seconds. Nobody waits as long, on no machine; it ends a test that would wait for ever."""


def start(work: Callable[[], Any]) -> Callable[[], Any]:
    """Does some work in a thread; the result of joining it is the result or the error.

    A RuntimeError among them: that of a session which was closed before the thread began.
    """
    box: list[Any] = []

    def run() -> None:
        try:
            box.append(work())
        except (tf.errors.OpError, RuntimeError) as e:
            box.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join() -> Any:
        thread.join(WAIT)
        assert not thread.is_alive()
        return box[0]

    return join
