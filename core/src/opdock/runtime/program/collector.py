"""The garbage collector waits while a program is compiled.

Compiling makes many objects and drops almost none before its end, so the collector would walk all
of them, and the user's graph, again and again: the cost would grow faster than the graph.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_lock = threading.RLock()
_waiting: Final[set[object]] = set()
_was_on = False


@contextmanager
def collector_waits() -> Iterator[None]:
    """Holds the collector back; blocks may nest and may run in several threads.

    A collector that the user has switched off stays off.
    """
    global _was_on
    me = object()
    try:
        with _lock:
            if not _waiting:
                _was_on = gc.isenabled()
                gc.disable()
            _waiting.add(me)
        yield
    finally:
        # Whoever was interrupted on the way in has not been counted, or has and is taken out.
        with _lock:
            _waiting.discard(me)
            if not _waiting and _was_on:
                gc.enable()
