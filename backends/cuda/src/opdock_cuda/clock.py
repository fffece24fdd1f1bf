"""The times of kernels, for traced steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import cupy

from opdock.plugin import KernelTime

__all__ = ["Clock"]


class Clock:
    """The times of kernels by events around each, kept only while a traced step runs."""

    def __init__(self) -> None:
        self.on = False
        self._start: Any = None
        self._ran: list[tuple[str, Any, Any]] = []

    def switch(self, on: bool) -> None:
        """Starts or stops keeping times."""
        self.on = on
        self._ran.clear()
        self._start = _marked() if on else None

    @contextlib.contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Takes the time of the work that is queued inside."""
        if not self.on:
            yield
            return
        begin = _marked()
        yield
        self._ran.append((name, begin, _marked()))

    def times(self) -> list[KernelTime]:
        """The times since the last call; the work is done by now."""
        ran, self._ran = self._ran, []
        return [KernelTime(name, self._since(begin), self._since(end)) for name, begin, end in ran]

    def _since(self, event: Any) -> int:
        event.synchronize()
        return int(cupy.cuda.get_elapsed_time(self._start, event) * 1e6)


def _marked() -> Any:
    event = cupy.cuda.Event()
    event.record(cupy.cuda.get_current_stream())
    return event
