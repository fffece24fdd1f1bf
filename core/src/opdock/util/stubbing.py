"""`tf.test.StubOutForTesting`."""

from __future__ import annotations

from typing import Any

__all__ = ["StubOutForTesting"]


class StubOutForTesting:
    """Replaces attributes for a while: `Set` or `SmartSet`, then `UnsetAll`."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replaces an attribute, remembering the old one."""
        self._saved.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    SmartSet = Set

    def UnsetAll(self) -> None:
        """Restores what was replaced."""
        while self._saved:
            setattr(*self._saved.pop())

    SmartUnsetAll = UnsetAll
