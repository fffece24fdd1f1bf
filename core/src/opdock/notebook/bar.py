"""A bar in a cell that shows how far work has come."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from html import escape
from typing import Any, Final

__all__ = ["Bar"]

_EVERY: Final = 0.2
"""Seconds between two pictures: each is a message to the browser."""


class Bar:
    """Shows a count below the cell that runs; what it shows is replaced, not added to.

    Args:
        publisher: that of IPython's shell, `shell.display_pub`.
        what: what is counted.
        clock: the seconds.
    """

    def __init__(
        self, publisher: Any, what: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._publisher, self._what, self._clock = publisher, what, clock
        self._name = {"display_id": uuid.uuid4().hex}
        self._shown: float | None = None

    def update(self, number: int, total: int, word: str) -> None:
        """Tells which one of how many has begun; it is shown if it is time to."""
        now = self._clock()
        if self._shown is None or now - self._shown >= _EVERY:
            self._show(number, total, word)
            self._shown = now

    def close(self, number: int, total: int, word: str = "") -> None:
        """Shows the end."""
        self._show(number, total, word)

    def _show(self, number: int, total: int, word: str) -> None:
        text = f"{self._what} {number:,}/{total:,} {word}".rstrip()
        html = f'<progress value="{number}" max="{total}"></progress> {escape(text)}'
        data = {"text/plain": text, "text/html": html}
        again = self._shown is not None
        self._publisher.publish(data, transient=self._name, update=again)
