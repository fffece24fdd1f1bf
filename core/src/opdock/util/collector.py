"""The garbage collector waits while much is made that stays.

Compiling makes many objects and drops almost none before its end, so the collector would walk all
of them, and the user's graph, again and again: the cost would grow faster than the graph. What
modules make as they are imported stays for good: the walks were a sixth of a process's first
session. At the end all that is new counts as old, without a walk: what modules made stays, and what
a program is made of goes with its last user. What hangs together in circles, such as graphs, waits
for the collector, which looks at what is old only once enough has become so before its eyes: so
after a few programs in a row the next one is walked.
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
_YOUNG: Final = 1  # the generation that is walked with those younger; what is left is old then
_MANY: Final = 10_000  # objects from which on that pays
_SPARED: Final = 4
"""Programs that become old without a walk between two looks at all that is old."""
_was_on = False
_spared = _looks = 0


class _Left(ContextDecorator):
    """A block that was left: nothing is to be done when the object goes."""


class collector_waits(_Left):
    """Holds the collector back; blocks may nest and may run in several threads.

    A collector that the user has switched off stays off. An interrupt may come on the way in and on
    the way out: then the collector is let go with the object.

    Args:
        lasting: whether what is made stays as long as the process.
    """

    def __init__(self, lasting: bool = False) -> None:
        self._lasting = lasting

    def _recreate_cm(self) -> collector_waits:
        return collector_waits(self._lasting)  # each call of a decorated function has its own

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
        # Python swallows a Ctrl-C that comes in a finalizer, and programs are made in such blocks.
        self.__class__ = _Left  # type: ignore[assignment]

    def __del__(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        with _lock:
            last = _waiting == {id(self)} and _was_on
            # Before the collector may run: it would at once.
            walk = last and gc.get_count()[0] > _MANY and not _are_old(self._lasting)
            if last:
                gc.enable()
            _waiting.discard(id(self))
        if walk:
            gc.collect(_YOUNG)


def _are_old(lasting: bool) -> bool:
    """Has all that is new count as old from now on, if that may be without a walk."""
    global _spared, _looks
    looks = gc.get_stats()[-1]["collections"]
    if looks != _looks:
        _spared, _looks = 0, looks
    # What the user has frozen stays so.
    if gc.get_freeze_count() or (_spared == _SPARED and not lasting):
        return False
    _spared += not lasting
    gc.freeze()
    gc.unfreeze()
    return True
