"""`tf.test.StubOutForTesting`."""

from __future__ import annotations

from typing import Any, Self

__all__ = ["StubOutForTesting"]


class StubOutForTesting:
    """Replaces attributes for a while: `Set` or `SmartSet`, then `CleanUp`, or a `with` block."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.CleanUp()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replaces an attribute, remembering the old one."""
        self._saved.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """`Set`, by the name and with the arguments of mox."""
        self.Set(obj, attr_name, new_attr)

    def CleanUp(self) -> None:
        """Restores what was replaced."""
        while self._saved:
            setattr(*self._saved.pop())

    UnsetAll = SmartUnsetAll = CleanUp
