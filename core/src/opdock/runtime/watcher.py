"""Who looks at the steps of sessions: a recorder of the process, or what compares two devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from opdock.dtypes import DType
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.runtime.engine import Engine
    from opdock.runtime.program.program import Program

__all__ = ["Watcher", "asked", "watching"]


class Watcher(Protocol):
    """Runs the steps of sessions in the place of their engines, and looks at them."""

    def compiled(
        self, program: Program, fetches: Sequence[Tensor], runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
    ) -> None:  # fmt: skip
        """Learns what a program was made of."""

    def run(self, engine: Engine, program: Program, values: Sequence[Any]) -> Sequence[Any]:
        """One step; gives what `program.run(values)` would."""
        ...


_asked: Watcher | None = None


def asked() -> Watcher | None:
    """The watcher that every new session of the process gets, if there is one."""
    return _asked


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Has all sessions that are made inside watched."""
    global _asked
    before, _asked = _asked, watcher
    try:
        yield
    finally:
        _asked = before
