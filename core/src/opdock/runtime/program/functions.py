"""Functions that kernels call when they like: the maps, filters and generators of datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opdock.compiler.pipeline import Compiled
from opdock.graph.control.rows import by_rows
from opdock.runtime.program.program import Program

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph

__all__ = ["LazyFunction"]

Compiles = Callable[["FuncGraph"], Compiled]
Binds = Callable[[], Callable[[Compiled], Program]]


class LazyFunction:
    """A function that is compiled once, when it is called first.

    Args:
        function: takes and gives host arrays.
        compiles: the function as the compiler leaves it.
        binds: what makes programs of that which share random streams, at their beginning.
    """

    def __init__(self, function: FuncGraph, compiles: Compiles, binds: Binds) -> None:
        self._function = function
        self._compiles = compiles
        self._binds = binds
        self._compiled: Compiled | None = None
        self._rows: LazyFunction | None = None
        self._has_rows = True
        self._lock = threading.Lock()

    def instance(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """See `opdock.kernels.select.cells.UserFunction`."""
        bind = self._binds()
        # A program has its own buffers, so each of several threads takes one for its call.
        idle: list[Program] = []

        def call(values: Sequence[Any]) -> Sequence[Any]:
            try:
                program = idle.pop()
            except IndexError:
                program = bind(self._program())
            try:
                return program.call(values)
            finally:
                idle.append(program)

        return call

    def _program(self) -> Compiled:
        with self._lock:
            if self._compiled is None:
                self._compiled = self._compiles(self._function)
            return self._compiled

    def by_rows(self) -> LazyFunction | None:
        """See `opdock.kernels.select.cells.UserFunction`."""
        with self._lock:
            if self._rows is None and self._has_rows:
                function = by_rows(self._function)
                self._has_rows = function is not None
                if function is not None:
                    self._rows = LazyFunction(function, self._compiles, self._binds)
            return self._rows
