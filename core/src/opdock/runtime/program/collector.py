"""The garbage collector waits while a program is compiled.

Compiling makes many objects and drops almost none before its end, so the collector would walk all
of them, and the user's graph, again and again: the cost would grow faster than the graph.
"""

from __future__ import annotations

import gc
import threading
from contextlib import ContextDecorator
from types import TracebackType
from typing import Final

# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_lock = threading.RLock()
_waiting: Final[set[int]] = set()
_was_on = False


class collector_waits(ContextDecorator):
    """Holds the collector back; blocks may nest and may run in several threads.

    A collector that the user has switched off stays off. An interrupt may come on the way in and on
    the way out: then the collector is let go with the object.
    """

    def _recreate_cm(self) -> collector_waits:
        return collector_waits()  # each call of a decorated function has one of its own

    def __enter__(self) -> None:
        global _was_on
        with _lock:
            if not _waiting:
                _was_on = gc.isenabled()
            _waiting.add(id(self))
            gc.disable()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._let_go()

    def __del__(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        with _lock:
            if id(self) in _waiting:
                if len(_waiting) == 1 and _was_on:
                    gc.enable()
                _waiting.discard(id(self))
