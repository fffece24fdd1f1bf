"""What outlives a program and holds arrays of devices: it goes when a device does.

A device that is lost, or closed, may come back with other memory. What was made in the old one is
no value any more, and whoever kept it would give it to the new one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

_CACHES: Final[list[functools._lru_cache_wrapper[Any]]] = []


def with_arrays(size: int) -> Callable[[Callable[..., Any]], functools._lru_cache_wrapper[Any]]:
    """Decorates a function whose results hold arrays of a device, `size` of which are kept."""

    def keep(function: Callable[..., Any]) -> functools._lru_cache_wrapper[Any]:
        cached = functools.lru_cache(maxsize=size)(function)
        _CACHES.append(cached)
        return cached

    return keep


def forget() -> None:
    """Lets go of all that is kept: programs that are made later make it anew."""
    for cached in _CACHES:
        cached.cache_clear()
