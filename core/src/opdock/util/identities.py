"""Collections that tell objects apart by identity: lists and arrays can be their keys."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any

__all__ = [
    "ObjectIdentityDictionary", "ObjectIdentitySet", "ObjectIdentityWeakKeyDictionary",
    "ObjectIdentityWeakSet", "Reference",
]  # fmt: skip


class ObjectIdentityWrapper:
    """An object as a key: equal to the keys of the same object alone."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    @property
    def unwrapped(self) -> Any:
        """The object."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectIdentityWrapper):
            raise TypeError("Cannot compare wrapped object with unwrapped object")
        return self._wrapped is other._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} wrapping {self._wrapped!r}>"


class WeakObjectIdentityWrapper(ObjectIdentityWrapper):
    """The same, but the object may go; an object has one weak reference without a callback."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(weakref.ref(wrapped))

    @property
    def unwrapped(self) -> Any:
        """The object; None once it has gone."""
        return self._wrapped()


class Reference(ObjectIdentityWrapper):
    """A reference that equals another one to the same object."""

    @property
    def unwrapped(self) -> Any:
        """Is not there: `deref` gives the object."""
        raise AttributeError("A Reference has no `unwrapped`; call deref()")

    def deref(self) -> Any:
        """The object."""
        return self._wrapped


class _ByIdentity:
    """Keys that are objects, and what is kept for each."""

    def __init__(self) -> None:
        self._storage: dict[ObjectIdentityWrapper, Any] = {}

    def _wrap_key(self, key: Any) -> ObjectIdentityWrapper:
        return ObjectIdentityWrapper(key)

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[Any]:
        return (key.unwrapped for key in [*self._storage])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._storage!r})"


class _ByWeakIdentity(_ByIdentity):
    """The same, without the keys that nobody else holds."""

    def _wrap_key(self, key: Any) -> ObjectIdentityWrapper:
        return WeakObjectIdentityWrapper(key)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Any]:
        for key in [*self._storage]:
            found = key.unwrapped
            if found is None:
                del self._storage[key]
            else:
                yield found


class ObjectIdentityDictionary(_ByIdentity, MutableMapping[Any, Any]):
    """A dictionary whose keys are objects, whatever they are equal to."""

    def __getitem__(self, key: Any) -> Any:
        return self._storage[self._wrap_key(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._storage[self._wrap_key(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._storage[self._wrap_key(key)]


class ObjectIdentityWeakKeyDictionary(_ByWeakIdentity, ObjectIdentityDictionary):
    """The same, without those of its keys that nobody else holds."""


class ObjectIdentitySet(_ByIdentity, MutableSet[Any]):
    """A set of objects, whatever they are equal to."""

    def __init__(self, *args: Iterable[Any]) -> None:
        super().__init__()
        for objects in args:
            self.update(objects)

    def __contains__(self, key: object) -> bool:
        return self._wrap_key(key) in self._storage

    def discard(self, key: Any) -> None:
        """Takes an object out, if it is there."""
        self._storage.pop(self._wrap_key(key), None)

    def add(self, key: Any) -> None:
        """Puts an object in."""
        self._storage[self._wrap_key(key)] = None

    def update(self, items: Iterable[Any]) -> None:
        """Puts objects in."""
        for item in items:
            self.add(item)

    def intersection(self, items: Iterable[Any]) -> ObjectIdentitySet:
        """The objects that are in both."""
        return type(self)(item for item in items if item in self)

    def difference(self, items: Iterable[Any]) -> ObjectIdentitySet:
        """The objects that are in this one alone."""
        others = {self._wrap_key(item) for item in items}
        return type(self)(item for item in self if self._wrap_key(item) not in others)


class ObjectIdentityWeakSet(_ByWeakIdentity, ObjectIdentitySet):
    """The same, without those of its objects that nobody else holds."""
