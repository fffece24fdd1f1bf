"""The garbage collector waits while a program is compiled.

Compiling makes many objects and drops almost none before its end, so the collector would walk all
of them, and the user's graph, again and again: the cost would grow faster than the graph.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_waits = 0
_was_on = False


@contextmanager
def collector_waits() -> Iterator[None]:
    """Holds the collector back; blocks may nest and may run in several threads.

    A collector that the user has switched off stays off.
    """
    global _waits, _was_on
    with _lock:
        if not _waits:
            _was_on = gc.isenabled()
            gc.disable()
        _waits += 1
    try:
        yield
    finally:
        with _lock:
            _waits -= 1
            if not _waits and _was_on:
                gc.enable()
