"""Containers of trackable objects that only grow: a checkpoint knows their items by their places.

Lists and dicts that become attributes are in `graph/variables/tracked_containers.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as AnyMapping
from typing import Any, Self

from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.tracked_containers import wrap
from opdock.graph.variables.tracked_structures import TrackableDataStructure

__all__ = ["GrowingStructure", "List", "Mapping", "TrackableDataStructure"]


class GrowingStructure(TrackableDataStructure):
    """A structure to which trackable objects are added, and nothing else."""

    def _track_value(self, value: Any, name: str) -> Any:
        """Declares an item; ValueError where it is not trackable."""
        item = wrap(value)
        if not isinstance(item, Trackable):
            raise ValueError(
                "Only trackable objects (such as Layers or Optimizers) may be stored in a "
                f"{type(self).__name__} object. Got {item}, which does not inherit from Trackable."
            )
        return self._track_trackable(item, name, overwrite=True)


class List(GrowingStructure, Sequence[Any]):
    """A sequence of trackable objects to which others are only appended.

    Args:
        values: the first objects; lists and dicts become containers that are tracked.

    Raises:
        ValueError: an object cannot be tracked.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self._storage: list[Any] = []
        self.extend(values)

    @property
    def _values(self) -> Iterable[Any]:
        return self._storage

    def append(self, value: Any) -> None:
        """Adds an object at the end."""
        self._storage.append(self._track_value(value, str(len(self._storage))))

    def extend(self, values: Iterable[Any]) -> None:
        """Adds objects at the end."""
        for value in values:
            self.append(value)

    def copy(self) -> Self:
        """Another list of the same objects."""
        return type(self)(self._storage)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self._storage, memo))

    def __getitem__(self, key: Any) -> Any:
        return self._storage[key]

    def __len__(self) -> int:
        return len(self._storage)

    def __repr__(self) -> str:
        return f"List({self._storage!r})"

    def __iadd__(self, values: Iterable[Any]) -> Self:
        self.extend(values)
        return self

    def __add__(self, other: Iterable[Any]) -> Self:
        return type(self)([*self._storage, *other])

    def __radd__(self, other: Iterable[Any]) -> Self:
        return type(self)([*other, *self._storage])

    def __mul__(self, n: int) -> Self:
        return type(self)(self._storage * n)

    __rmul__ = __mul__

    def __imul__(self, n: int) -> Self:
        if n <= 0:
            raise ValueError(
                f"List only supports append, multiplying in place by {n} removes elements."
            )
        self.extend(self._storage * (n - 1))
        return self


class Mapping(GrowingStructure, AnyMapping[str, Any]):
    """A mapping from strings to trackable objects, to which others are only added.

    Args:
        *args, **kwargs: what `dict` takes.

    Raises:
        TypeError: a key is no string.
        ValueError: an object cannot be tracked.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._storage: dict[str, Any] = {}
        self.update(*args, **kwargs)

    @property
    def _values(self) -> Iterable[Any]:
        return [self._storage[key] for key in sorted(self._storage)]

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Mapping accepts only string keys, but got a key {key!r}.")
        current = self._storage.get(key, value)
        if current is not value:
            raise ValueError(
                f"Mappings are an append-only data structure. Tried to overwrite the key '{key}' "
                f"with value {value}, but it already contains {current}"
            )
        self._storage[key] = self._track_value(value, key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Adds several objects."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __getitem__(self, key: str) -> Any:
        return self._storage[key]

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage)

    def __repr__(self) -> str:
        return f"Mapping({self._storage!r})"
