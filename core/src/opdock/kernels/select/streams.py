"""The places of random ops in their streams: state of a session that all devices share.

A stream is that of Philox4x32-10, counted in blocks of 128 bits. A node that falls back to another
device in the middle of a session goes on where it was.
"""

from __future__ import annotations

import threading
from typing import Final, Self

from opdock.kernels.select.signature import NodeSig
from opdock.util import entropy

__all__ = ["RandomStream", "random_stream"]

_MASK64: Final = (1 << 64) - 1
_MASK128: Final = (1 << 128) - 1


class RandomStream:
    """A stateful op's place in its stream: each run reserves the next stretch.

    Args:
        seed, seed2: TF's pair of seeds: the key, and the upper half of the first counter.
    """

    __slots__ = ("_key", "_lock", "_next")

    def __init__(self, seed: int, seed2: int) -> None:
        self._key = seed & _MASK64
        self._next = (seed2 & _MASK64) << 64
        self._lock = threading.RLock()

    @classmethod
    def at(cls, place: tuple[int, int]) -> Self:
        """A stream that goes on at a key and a counter, as `reserve` gives them."""
        made = cls(0, 0)
        made.place = place
        return made

    def reserve(self, blocks: int) -> tuple[int, int]:
        """The 64-bit key and the 128-bit counter of the next `blocks` blocks, which are taken."""
        with self._lock:
            # No call from here on: a signal handler comes before both of these lines or after.
            here = self._next
            self._next = (here + blocks) & _MASK128
        return self._key, here

    @property
    def place(self) -> tuple[int, int]:
        """The key and the counter of the next block."""
        with self._lock:
            return self._key, self._next

    @place.setter
    def place(self, place: tuple[int, int]) -> None:
        with self._lock:
            self._key, self._next = place[0] & _MASK64, place[1] & _MASK128

    def give_back(self, place: tuple[int, int], blocks: int) -> None:
        """Takes back what was reserved last and not drawn; where others drew since, it is lost."""
        with self._lock:
            if self._next == (place[1] + blocks) & _MASK128:
                self._next = place[1]


def random_stream(sig: NodeSig) -> RandomStream:
    """The stream of a node with the attributes `seed` and `seed2` in its session.

    Without seeds a session draws fresh ones.
    """
    seed, seed2 = int(sig.attrs["seed"]), int(sig.attrs["seed2"])

    def start() -> RandomStream:
        if seed == 0 and seed2 == 0:
            return RandomStream(*entropy.two_words())
        return RandomStream(seed, seed2)

    if sig.resources is None:
        return start()
    stream: RandomStream = sig.resources.node_state(sig.name, start)
    return stream
