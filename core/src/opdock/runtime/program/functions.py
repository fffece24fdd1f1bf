"""Functions that kernels call when they like: the maps, filters and generators of datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opdock.compiler.pipeline import Compiled
from opdock.runtime.program.program import Program

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph

__all__ = ["LazyFunction"]


class LazyFunction:
    """A function that is compiled once, when it is called first.

    Args:
        function: takes and gives host arrays.
        compiles: the function as the compiler leaves it.
        binds: a program of that, its random streams at their beginning.
    """

    def __init__(
        self, function: FuncGraph, compiles: Callable[[FuncGraph], Compiled],
        binds: Callable[[Compiled], Program],
    ) -> None:  # fmt: skip
        self._function = function
        self._compiles = compiles
        self._binds = binds
        self._compiled: Compiled | None = None
        self._lock = threading.Lock()

    def instance(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """See `opdock.kernels.select.cells.UserFunction`."""
        program: Program | None = None

        def call(values: Sequence[Any]) -> Sequence[Any]:
            nonlocal program
            if program is None:
                with self._lock:
                    if self._compiled is None:
                        self._compiled = self._compiles(self._function)
                    if program is None:
                        program = self._binds(self._compiled)
            return program.call(values)

        return call
