"""Which day's changes of graphs a program may use: `tf.compat.forward_compatible`."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Final

__all__ = ["forward_compatibility_horizon", "forward_compatible"]

_RELEASED: Final = dt.date(2019, 8, 21)
"""What TensorFlow 1.15 counts as the day on which all consumers are up to date."""
_horizon = [_RELEASED]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether a graph may have what consumers of that day do not know yet."""
    return _horizon[-1] > dt.date(year, month, day)


@contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """Counts another day as the one on which all consumers are up to date, for tests."""
    _horizon.append(dt.date(year, month, day))
    try:
        yield
    finally:
        _horizon.pop()
