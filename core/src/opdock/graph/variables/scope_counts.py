"""How often each variable scope was opened: what makes default names unique."""

from __future__ import annotations

__all__ = ["ScopeCounts"]


class ScopeCounts:
    """One scope: how often it was opened, and the same of those below it.

    A tree, so that leaving a scope forgets what is below it without looking at all others.
    """

    __slots__ = ("_below", "_next", "count")

    def __init__(self) -> None:
        self.count = 0
        self._below: dict[str, ScopeCounts] = {}
        # For names asked for: numbers smaller than that are taken.
        self._next: dict[str, int] = {}

    def at(self, name: str) -> ScopeCounts:
        """The scope of a name below this one; this one for the empty name."""
        found = self
        for part in name.split("/") if name else ():
            found = found._below.setdefault(part, ScopeCounts())
        return found

    def unique(self, name: str) -> str:
        """A name below this scope that is not open: `name`, or with the first number that fits."""
        if not self._taken(name):
            return name
        number = self._next.get(name, 1)
        while self._taken(f"{name}_{number}"):
            number += 1
        self._next[name] = number
        return f"{name}_{number}"

    def _taken(self, name: str) -> bool:
        found: ScopeCounts | None = self
        for part in name.split("/"):
            found = found._below.get(part) if found is not None else None
        return found is not None and found.count > 0

    def close(self) -> None:
        """Forgets what is below: the next time, names count from the start."""
        self._below, self._next = {}, {}

    def copy(self) -> ScopeCounts:
        """How it stands now."""
        made = ScopeCounts()
        made.count, made._next = self.count, dict(self._next)
        made._below = {name: below.copy() for name, below in self._below.items()}
        return made

    def restore(self, copied: ScopeCounts) -> None:
        """Makes it what it was when it was copied."""
        self.count, self._below, self._next = copied.count, copied._below, copied._next
