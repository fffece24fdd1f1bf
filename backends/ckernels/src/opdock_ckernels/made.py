"""Kernels that are made once: to write a source takes longer than to queue what it says."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

__all__ = ["once"]

_T = TypeVar("_T")


def once(make: Callable[..., _T]) -> Callable[..., _T]:
    """Decorates a function of a device and hashable arguments: it is called once for them.

    What it gave goes with the device.
    """
    made: weakref.WeakKeyDictionary[Any, dict[tuple[Hashable, ...], _T]] = (
        weakref.WeakKeyDictionary()
    )

    @functools.wraps(make)
    def find(device: Any, *args: Hashable) -> _T:
        known = made.get(device)
        if known is None:
            known = made[device] = {}
        if args not in known:
            known[args] = make(device, *args)
        return known[args]

    return find
