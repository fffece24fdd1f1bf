"""Asking Ray while it is there, and not any more once the interpreter ends.

Ray ends the process, as if it had failed, when a thread is with it after it has shut down: be it
that the thread asks then, or that it gets an answer for which it has been waiting. Ray shuts down
while the interpreter ends, and threads go on meanwhile. So whoever asks says so, and before Ray
shuts down nobody new is let in, those who wait are roused, and who is with Ray is waited for.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import ray
from ray.exceptions import RayError

__all__ = ["Asking", "Over"]

_PATIENCE: Final = 5.0
_LOOK: Final = 0.5  # seconds after which who waits for an answer looks whether Ray is to shut down


class Over(Exception):
    """Ray has shut down, or is about to."""


class Asking:
    """Who is with Ray now; calling it is asking.

    It is made after Ray was imported, so that its end comes before that of Ray.

    Attributes:
        inherited: whether this process was forked from one that had joined Ray. The threads by
            which Ray works are that one's, and so is its place among Ray's processes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asking = 0
        self._closed = self.inherited = False
        self._rouse: list[Callable[[], None]] = []
        atexit.register(self._close)
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._changed, self._asking = threading.Condition(), 0
        self._rouse.clear()
        self._closed = self.inherited = self.inherited or ray.is_initialized()
        if self.inherited:
            atexit.unregister(ray.shutdown)  # it would wait for ever for the parent's threads

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Inside, Ray is there.

        Raises:
            Over: it is not any more.
        """
        with self._changed:
            if self._closed or not ray.is_initialized():
                raise Over
            self._asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def get(self, reference: Any) -> Any:
        """What an actor answers, be it that the actor has still to start: that takes seconds.

        Raises:
            Over: Ray is about to shut down.
            RayError: the actor has ended, or has raised something.
        """
        while True:
            with self():
                ready, _ = ray.wait([reference], timeout=_LOOK)
                if ready:
                    return ray.get(ready[0])

    def check(self) -> None:
        """Looks whether the process is ending, in which nobody may join Ray again.

        Raises:
            Over: it is.
        """
        if self._closed:
            raise Over("this process is ending")

    def rouses(self, function: Callable[[], None]) -> None:
        """Has a function called at the end, after which somebody who waits for an answer has it."""
        with self._changed:
            self._rouse.append(function)

    def forget(self, function: Callable[[], None]) -> None:
        """Takes back `rouses`."""
        with self._changed:
            self._rouse.remove(function)

    def _close(self) -> None:
        with self._changed:
            self._closed, rouse = True, tuple(self._rouse)
        for function in rouse if ray.is_initialized() else ():
            with contextlib.suppress(RayError):
                function()
        with self._changed:
            self._changed.wait_for(lambda: not self._asking, _PATIENCE)
