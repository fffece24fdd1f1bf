"""Notes: what kernels say, as they are bound, of how they compute. `Session.explain` shows them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeVar

__all__ = ["Noting", "heard", "note"]

_T = TypeVar("_T")
_TAKEN: Final[ContextVar[list[str] | None]] = ContextVar("opdock_notes", default=None)


def note(text: str) -> None:
    """Says how the kernel computes that is being bound: by which library, on how many threads.

    `Session.explain` shows it with the node. Where no kernel is being bound, nobody hears it.

    Args:
        text: a few words, such as "a library on up to 4 threads".
    """
    taken = _TAKEN.get()
    if taken is not None and text not in taken:
        taken.append(text)


def heard(make: Callable[..., _T]) -> Callable[..., _T]:
    """`make`, whose notes are the bound kernel's though it is called later.

    For what a kernel prepares when it sees its first inputs.
    """
    taken = _TAKEN.get()
    if taken is None:
        return make

    def call(*args: object) -> _T:
        with Noting(taken):
            return make(*args)

    return call


class Noting:
    """A context whose notes are added to a list; none comes twice."""

    __slots__ = ("_before", "_taken")

    def __init__(self, taken: list[str]) -> None:
        self._taken = taken

    def __enter__(self) -> None:
        self._before = _TAKEN.set(self._taken)

    def __exit__(self, *_: object) -> None:
        _TAKEN.reset(self._before)
