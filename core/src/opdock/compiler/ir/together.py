"""Sets that grow together: what is joined to one member is joined to all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

__all__ = ["Together"]

_T = TypeVar("_T", bound=Hashable)


class Together(Generic[_T]):
    """Items, at first each by itself; every set is known by one of its members, its root.

    Args:
        items: those that it is to know before they are joined; others come with `join`.
    """

    __slots__ = ("_parent",)

    def __init__(self, items: Iterable[_T] = ()) -> None:
        self._parent = {item: item for item in items}

    def __contains__(self, item: _T) -> bool:
        return item in self._parent

    def root(self, item: _T) -> _T:
        """The member by which the item's set is known."""
        parent = self._parent
        above = parent.get(item, item)
        while above is not item:
            # Half the way is all that the next walk takes.
            parent[item] = item = parent[above]
            above = parent[item]
        return item

    def join(self, item: _T, other: _T) -> None:
        """Makes one set of two, known by the root of the second."""
        root = self.root(other)
        self._parent[self.root(item)] = self._parent[root] = root
