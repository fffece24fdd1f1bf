"""Tensors and variables in dictionaries and sets: `==` of theirs may mean the elements."""

from __future__ import annotations

from typing import Any

__all__ = ["Referable", "Reference"]


class Reference:
    """Stands for an object in dictionaries and sets: equal if it is the same object."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        """The object."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


class Referable:
    """What dictionaries and sets may hold by identity."""

    __slots__ = ()

    def experimental_ref(self) -> Reference:
        """A stand-in for dictionaries and sets that compares by identity."""
        return Reference(self)

    ref = experimental_ref  # TF 2's name of it: tf_keras asks for it
