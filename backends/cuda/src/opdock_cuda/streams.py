"""Streams, events and the times of kernels in the terms of opdock's device contract."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import cupy

from opdock.plugin import KernelTime

__all__ = ["Clock", "Mark", "Queue"]


class Mark:
    """An event: a place in a stream."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def synchronize(self) -> None:
        """Blocks until the GPU has got there."""
        self.event.synchronize()


class Queue:
    """A CUDA stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def record(self) -> Mark:
        """Marks the work queued so far."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return Mark(event)

    def wait(self, event: Any) -> None:
        """Makes later work wait for a mark, without blocking the host."""
        if isinstance(event, Mark):
            self.stream.wait_event(event.event)
        else:
            event.synchronize()

    def synchronize(self) -> None:
        """Blocks until the stream is empty."""
        self.stream.synchronize()


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
