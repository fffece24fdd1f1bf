"""Tables that are loaded when a program has one of the ops that they hold kernels for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from opdock.kernels.select.table import Kernel, KernelTable
from opdock.util.collector import collector_waits
from opdock.util.shelter import shelter

__all__ = ["DeferredTable"]


class DeferredTable:
    """A table of which only the op types are known until one of them is asked for.

    Args:
        name: what the table is called, for the error.
        ops: the op types that it is declared to hold.
        load: gives the table; called once, unless it fails.
    """

    def __init__(self, name: str, ops: Iterable[str], load: Callable[[], KernelTable]) -> None:
        self._name = name
        self._ops = frozenset(ops)
        self._load = load
        self._lock = threading.Lock()
        self._table: KernelTable | None = None

    def ops(self) -> list[str]:
        """The op types that the table is declared to hold, sorted; loads nothing."""
        return sorted(self._ops)

    def for_op(self, op: str) -> tuple[Kernel, ...]:
        """The kernels for one op type; loads the table if it is declared to hold some.

        Raises:
            ValueError: the table holds kernels for ops that it is not declared to hold.
        """
        return self._loaded().for_op(op) if op in self._ops else ()

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._loaded())

    def _loaded(self) -> KernelTable:
        found = self._table
        if found is None:
            with collector_waits(lasting=True):  # and no finalizer comes here, either
                found = shelter(self._load_once)
        return found

    def _load_once(self) -> KernelTable:
        # Two threads get one table: a kernel is known by being the same record.
        with self._lock:
            if self._table is None:
                self._table = self._checked(self._load())
            return self._table

    def _checked(self, table: KernelTable) -> KernelTable:
        beyond = set(table.ops()) - self._ops
        if beyond:
            raise ValueError(
                f"{self._name!r} has kernels for {', '.join(sorted(beyond))}, which it is not "
                "declared to hold: nobody would find them"
            )
        return table
