"""A compiled kernel, and what is known of it from its first launch on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

__all__ = ["Kernel"]


class Kernel:
    """A kernel of a program.

    Args:
        program: a PyOpenCL program.
        name: the kernel in it.

    Attributes:
        name: the same.
        largest: the most work items that a group of it may have.
    """

    __slots__ = ("_call", "_program", "_types", "largest", "name")

    def __init__(self, program: Any, name: str) -> None:
        self.name, self._program = name, program
        self._call = _kept_or_made(lambda: cl.Kernel(program, name))
        self._types: list[Any] | None = None
        (device,) = program.devices
        most = cl.kernel_work_group_info.WORK_GROUP_SIZE
        largest: Any = self._call.get_work_group_info(most, device)
        self.largest = int(largest)

    def again(self) -> Kernel:
        """One with arguments of its own."""
        return Kernel(self._program, self.name)

    def __call__(
        self, queue: Any, items: tuple[int, ...], group: tuple[int, ...] | None, args: list[Any]
    ) -> Any:
        """Queues it; scalars are NumPy's, of the same types every time.

        PyOpenCL looks for a scalar's type some 6 us long, unless it knows it.
        """
        if self._types is None:
            types = [a.dtype if isinstance(a, np.generic) else None for a in args]
            _kept_or_made(lambda: self._call.set_scalar_arg_dtypes(types))
            self._types = types
        return self._call(queue, items, group, *args)


def _kept_or_made(make: Callable[[], Any]) -> Any:
    """What `make` gives; PyOpenCL keeps the Python of its calls in a database on disk.

    Where that is broken, this process goes on without: the switch of `PYOPENCL_NO_CACHE`, which
    PyOpenCL reads from the environment when it is imported.
    """
    try:
        return make()
    except sqlite3.Error:
        cl._PYOPENCL_NO_CACHE = True
        return make()
