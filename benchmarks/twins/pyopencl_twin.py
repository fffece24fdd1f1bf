"""PyOpenCL's device, queue and pool of memory; it has no workloads."""

from __future__ import annotations

import functools
from typing import Any, Final

import pyopencl as cl

TWINS: Final[dict[str, Any]] = {}


def setup(threads: int) -> None:
    """A CPU's driver takes the processors that the process may use."""


@functools.cache
def context() -> Any:
    """Of the first device."""
    return cl.Context([next(d for p in cl.get_platforms() for d in p.get_devices())])


@functools.cache
def queue() -> Any:
    """In order."""
    return cl.CommandQueue(context())


@functools.cache
def pool() -> Any:
    """What is given back is used again."""
    return cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue()))
