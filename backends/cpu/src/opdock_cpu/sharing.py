"""Whether short work is shared out over threads: only while that gains.

A second thread halves a product of 100 microseconds, if it runs at once. On a machine with other
work it may have to wait for a core, several milliseconds at a time, and the first thread waits for
it at the end. So the two ways are timed where they happen. Each place that computes first learns
what its work takes on one thread; from then on all places together compare what their shared work
took with what it would have taken alone. Where it lost, all of them stay on one thread for a
while, which becomes longer from time to time, and then try again. Long work is always shared: a
few milliseconds matter little to it, and the system divides the cores evenly.

Which way was taken never shows in the results: who computes alone goes through the same shares in
order, or has proven that one thread gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Final

__all__ = ["GOVERNOR", "Governor", "Site"]

LONG: Final = 8e-3
"""Seconds on one thread from which work is always shared: two time slices of a busy system."""
_VERY_LONG: Final = LONG / 2
"""Seconds of a first call on several threads from which one thread is not even tried."""
_WINDOW: Final = 5e-3
"""Seconds of work, as it would take alone, that are judged together."""
_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_TRIALS: Final = 2
"""Calls on one thread by which a place learns what its work takes there."""
_OUTLIER: Final = 16.0
"""One call counts for at most so many times what the work takes alone."""
_RECENT: Final = 0.2
"""The weight of the last call in what the work takes alone."""


class Governor:
    """What all places together know: whether threads are to be had just now.

    Args:
        clock: gives seconds.

    Attributes:
        shares: whether short work is shared out at the moment.
    """

    __slots__ = ("_alone", "_pause", "_spent", "_until", "clock", "shares")

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self.shares = True
        self._pause = _PAUSE
        self._until = 0.0
        self._spent = self._alone = 0.0

    def again(self) -> bool:
        """Whether it is time to try threads again, after they lost."""
        if self.clock() < self._until:
            return False
        self._spent = self._alone = 0.0
        self.shares = True
        return True

    def wanted(self, alone: float) -> bool:
        """Whether work that takes `alone` seconds on one thread is to be shared out now."""
        return self.shares or alone > LONG or self.again()

    def judge(self, spent: float, alone: float) -> None:
        """Counts one call that was shared out, and judges when there are enough.

        Args:
            spent: the seconds that it took.
            alone: the seconds that it takes on one thread.
        """
        self._spent += min(spent, _OUTLIER * alone)
        self._alone += alone
        if max(self._spent, self._alone) < _WINDOW:
            return
        if self._spent > self._alone:
            self.shares = False
            self._until = self.clock() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        else:
            self._pause = _PAUSE
        self._spent = self._alone = 0.0


GOVERNOR: Final = Governor()
"""The process's."""


class Site:
    """One place that computes, with the same amount of work at each call.

    Args:
        governor: who decides.
    """

    __slots__ = ("_alone", "_calls", "_governor", "_least")

    def __init__(self, governor: Governor = GOVERNOR) -> None:
        self._governor = governor
        self._calls = 0
        self._alone = self._least = math.inf

    def shared(self) -> bool:
        """Whether the next call is to be shared out over threads."""
        calls = self._calls
        if calls <= _TRIALS:
            # The first call finds cold memory, so it only tells what is very long.
            self._calls = calls + 1
            return calls == 0
        governor = self._governor
        return governor.shares or self._least > LONG or governor.again()

    def tell(self, shared: bool, seconds: float) -> None:
        """What a call took.

        Args:
            shared: what `shared` said before it.
            seconds: the time that it took.
        """
        alone = self._alone
        if not shared:
            self._least = min(self._least, seconds)
            if alone == math.inf:
                self._alone = seconds
            else:
                self._alone = alone + _RECENT * (min(seconds, _OUTLIER * alone) - alone)
        elif alone == math.inf:
            if seconds > _VERY_LONG:
                self._calls = _TRIALS + 1
        elif self._least <= LONG:
            self._governor.judge(seconds, alone)
