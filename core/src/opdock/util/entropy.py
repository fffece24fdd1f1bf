"""What random numbers without a seed begin with."""

from __future__ import annotations

import os

__all__ = ["drawn", "two_words"]


def drawn(count: int) -> bytes:
    """So many bytes of chance."""
    return os.urandom(count)


def two_words() -> tuple[int, int]:
    """Two numbers of 64 bits: the key of a stream, or a pair of seeds."""
    fresh = drawn(16)
    return int.from_bytes(fresh[:8], "little"), int.from_bytes(fresh[8:], "little")
