"""Whether short work is shared out over threads: only while that gains.

A second thread halves a product of 100 microseconds, if it runs at once. On a machine with other
work, to wake it may cost the first one its core for some milliseconds. So calls are timed where
they happen, on one thread and on several. What makes them comparable is the base of each place, the
least time that its work takes on one thread: a way is as slow as its calls take of their bases, and
all places together learn how slow the two are. The process keeps to one way and tries the other now
and then, less often the longer it loses; it changes only for a clear gain. Where several threads
take clearly less than the bases, there is nothing to try. Long work is always shared: a few
milliseconds matter little to it, and the system divides the cores evenly.

Which way was taken never shows in the results: who computes alone goes through the same shares in
order, or has proven that one thread gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Final

__all__ = ["GOVERNOR", "Governor", "Site"]

_LONG: Final = 8e-3
"""Seconds on one thread from which work is always shared: two time slices of a busy system."""
_WINDOW: Final = 2e-2
"""Seconds of calls that are judged together: with other work, some slices of it are among them."""
_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_CLEAR: Final = 0.9
"""How slow one way may be beside the other to be preferred to it."""
_TRIALS: Final = 3
"""Calls by which a place learns what its work takes: one shared out, the others on one thread."""
_LATER: Final = 30
"""Calls after which that is learned where the first one took long: with other work, most do."""
_RISE: Final = 1.01
"""How much a base may grow with each call: work gets dearer too, for instance with the memory."""


class Governor:
    """What all places together know: which way is the quicker one just now.

    Args:
        clock: gives seconds.

    Attributes:
        shares: whether short work is shared out at the moment.
    """

    __slots__ = ("_base", "_clock", "_home", "_pause", "_slow", "_spent", "_until", "shares")

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self.shares = self._home = True
        # By the way taken; one thread is at best as quick as the bases.
        self._slow = {True: 1.0, False: 1.0}
        self._spent = self._base = 0.0
        self._pause = 0.0
        self._until = math.inf

    def wanted(self, base: float) -> bool:
        """Whether work of that base, in seconds, is to be shared out now."""
        if base > _LONG:
            return True
        if self._clock() >= self._until:
            self._take(not self._home)
            self._until = math.inf
        return self.shares

    def judge(self, shared: bool, spent: float, base: float) -> None:
        """Counts a call, and judges when there are enough.

        Args:
            shared: whether it was shared out.
            spent: the seconds that it took.
            base: the least seconds that its work takes on one thread.
        """
        if shared is not self.shares or base > _LONG:
            return
        self._spent += spent
        self._base += base
        # Another thread may begin anew at any moment; what it counts meanwhile may be lost.
        spent, base = self._spent, self._base
        if max(spent, base) < _WINDOW or not base:
            return
        self._slow[shared] = spent / base
        self._spent = self._base = 0.0
        if shared is self._home:
            self._stay()
        else:
            self._choose()

    def _take(self, shares: bool) -> None:
        self.shares = shares
        self._spent = self._base = 0.0

    def _stay(self) -> None:
        """After calls of the preferred way: is the other worth a trial?"""
        if self._home and self._slow[True] < _CLEAR:
            self._pause, self._until = 0.0, math.inf
        elif self._until == math.inf:
            self._until = self._clock() + self._pause

    def _choose(self) -> None:
        """After a trial of the other way."""
        if self._slow[self.shares] < _CLEAR * self._slow[self._home]:
            self._home, self._pause = self.shares, _PAUSE
        else:
            self._pause = min(max(2 * self._pause, _PAUSE), _LONGEST_PAUSE)
        self._take(self._home)
        self._until = self._clock() + self._pause


GOVERNOR: Final = Governor()
"""The process's."""


def least(base: float, seconds: float) -> float:
    """The base after a call that took so long; `base` is 0 before the first."""
    return min(seconds, _RISE * base) if base else seconds


class Site:
    """One place that computes, with the same amount of work at each call.

    For calls that tell nothing of what one thread would have taken: that is tried, soon, or where
    the first call took long, after some more.

    Args:
        governor: who decides.
    """

    __slots__ = ("_base", "_calls", "_governor", "_new")

    def __init__(self, governor: Governor = GOVERNOR) -> None:
        self._governor = governor
        self._calls = 0
        self._base = 0.0
        self._new = True

    def shared(self) -> bool:
        """Whether the next call is to be shared out over threads."""
        self._calls += 1
        if self._base and self._calls > _TRIALS:
            return self._governor.wanted(self._base)
        return self._calls < 2

    def tell(self, shared: bool, seconds: float) -> None:
        """What a call took.

        Args:
            shared: what `shared` said before it.
            seconds: the time that it took.
        """
        if not shared:
            self._base = least(self._base, seconds)
        elif self._new and seconds > _LONG / 2:
            self._calls = 1 - _LATER
        self._new = False
        if self._base:
            self._governor.judge(shared, seconds, self._base)
