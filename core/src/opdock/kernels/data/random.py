"""Words of Philox4x32-10 one by one, as TF's datasets draw them."""

from __future__ import annotations

from typing import Final

import numpy as np

from opdock.kernels.data.base import State
from opdock.kernels.philox import blocks

__all__ = ["Words"]

_MANY: Final = 256
"""Blocks that are drawn at once."""


class Words:
    """A stream of 32-bit words.

    Args:
        seed: the key.
        seed2: the upper half of the first counter.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        self.seeds = seed, seed2
        self.drawn = 0
        self._words: list[int] = []
        self._first = 0

    def next(self) -> int:
        """The next word."""
        at = self.drawn - self._first
        if not 0 <= at < len(self._words):
            self._fill()
            at = self.drawn - self._first
        self.drawn += 1
        return self._words[at]

    def _fill(self) -> None:
        seed, seed2 = self.seeds
        block = self.drawn // 4
        place = seed, ((seed2 << 64) + block) & ((1 << 128) - 1)
        words = blocks(place, np.arange(_MANY, dtype=np.int64), _MANY - 1)
        every = [np.broadcast_to(np.asarray(w, np.int64), (_MANY,)) for w in words]
        self._words = [int(w) for w in np.stack(every, axis=1).reshape(-1)]
        self._first = 4 * block

    def pair(self) -> int:
        """Two words as one of 64 bits, the first the lower half."""
        low = self.next()
        return low | self.next() << 32

    def save(self) -> State:
        """Where it stands."""
        seed, seed2 = self.seeds
        return {"seed": seed, "seed2": seed2, "drawn": self.drawn}

    def restore(self, state: State) -> None:
        """Goes where another stream stood."""
        self.seeds, self.drawn = (state["seed"], state["seed2"]), state["drawn"]
        self._words = []
