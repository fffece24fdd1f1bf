"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["lazy"]

_T = TypeVar("_T")


class lazy(Generic[_T]):
    """A method whose result becomes the attribute of its name.

    It is `functools.cached_property` as Python has it from 3.12 on. Before, that holds a lock which
    all objects of a class share while one of them computes: whoever waits there for another lock
    stops all sessions, and for ever if the other lock's holder comes to such an attribute.

    Args:
        compute: the method. Threads that ask at once may all call it; one result stays.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type[Any] | None = None) -> _T: ...

    def __get__(self, owner: object | None, kind: type[Any] | None = None) -> Self | _T:
        if owner is None:
            return self
        found: _T = owner.__dict__.setdefault(self._name, self._compute(owner))
        return found
