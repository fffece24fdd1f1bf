"""The lists and dicts among the attributes of an object whose attributes are its dependencies.

A checkpoint knows the items of a list by their places and those of a dict by their keys.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import (
    Callable,
    Iterable,
)  # fmt: skip
from typing import Any, ClassVar, Self, SupportsIndex

from opdock.graph.variables.trackable import NoDependency, Trackable, TrackableReference
from opdock.graph.variables.tracked_structures import Wrapper, plain, same

__all__ = ["DictWrapper", "ListWrapper", "OrderedDictWrapper", "wrap"]


def wrap(value: Any) -> Any:
    """A plain list or dict as one that tracks its items, and any other value as it is."""
    wrapper = _WRAPPERS.get(type(value))
    return value if wrapper is None else wrapper(value)


def _unmarked(value: Any) -> Any:
    return value.value if isinstance(value, NoDependency) else value


class ListWrapper(Wrapper, list[Any]):
    """A list whose trackable items are dependencies, named by their places.

    It takes the place of a list that becomes an attribute. Items can be added at the end, and items
    that are not trackable replaced; after any other change, and after any to the list that it
    wraps, a checkpoint could not tell which item is which, and saving raises ValueError.

    Args:
        wrapped_list: the list.
    """

    _object_identifier = "trackable_list_wrapper"
    _what = "list"
    _why_it_is = "a list wrapper constructed to track trackable TensorFlow objects"

    def __init__(self, wrapped_list: Iterable[Any] = ()) -> None:
        super().__init__(wrapped_list if type(wrapped_list) is list else list(wrapped_list))
        self._track_from(self._self_wrapped, [])
        self._see()

    @property
    def _values(self) -> Iterable[Any]:
        return self

    def _seen(self) -> list[Any]:
        return list(list.__iter__(self))

    def _see(self) -> None:
        list.__setitem__(self, slice(None), self._self_wrapped)

    def _as_seen(self) -> bool:
        same_length = len(self._self_wrapped) == list.__len__(self)
        return same_length and all(map(same, self._self_wrapped, list.__iter__(self)))

    def _tracked(self, value: Any, place: int) -> Any:
        item = wrap(value)
        if isinstance(item, Trackable):
            self._track_trackable(item, str(place), overwrite=True)
        return _unmarked(item)

    def _track_from(self, items: list[Any], before: list[Any]) -> None:
        """Tracks the items that are not where they were before."""
        for place, item in enumerate(items):
            if place >= len(before) or item is not before[place]:
                items[place] = self._tracked(item, place)

    def _broken(self, by: str) -> None:
        """Keeps in mind what was done after which the list cannot be saved."""
        self._self_change = self._self_change or (
            "A list element was replaced (__setitem__, __setslice__), deleted (__delitem__,"
            " __delslice__, pop), or moved (sort, reverse, insert); here the first such change was"
            f" {by}. In order to support restoration on object creation, tracking is exclusively"
            " for append-only data structures."
        )

    def _change(self, method: Callable[..., Any], *args: Any, by: str = "") -> Any:
        """Changes the list in a way after which it cannot be saved, by a method of lists."""
        if not self._self_change:
            self._look()
        elif len(self._self_wrapped) != list.__len__(self):
            self._see()
        found = method(self._self_wrapped, *args)
        method(self, *args)
        self._broken(by or method.__name__)
        return found

    # ------------------------------------------------------------ what is in it
    def index(self, value: Any, *bounds: SupportsIndex) -> int:
        """The first place of an item."""
        return int(self._self_wrapped.index(value, *bounds))

    def count(self, value: Any) -> int:
        """How often an item is in it."""
        return int(self._self_wrapped.count(value))

    def __lt__(self, other: Any) -> bool:
        return bool(self._self_wrapped < plain(other))

    def __le__(self, other: Any) -> bool:
        return bool(self._self_wrapped <= plain(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self._self_wrapped > plain(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self._self_wrapped >= plain(other))

    def __add__(self, other: Any) -> Self:
        return type(self)(self._self_wrapped + plain(other))

    def __radd__(self, other: Any) -> Self:
        return type(self)(other + self._self_wrapped)

    def __mul__(self, n: SupportsIndex) -> Self:
        return type(self)(self._self_wrapped * n)

    __rmul__ = __mul__

    def __sizeof__(self) -> int:
        return list.__sizeof__(self) + sys.getsizeof(self._self_wrapped)

    # ------------------------------------------------------------ what can be saved
    def append(self, value: Any) -> None:
        """Adds an item at the end."""
        if len(self._self_wrapped) != list.__len__(self):
            self._look()
        self._self_wrapped.append(self._tracked(value, len(self._self_wrapped)))
        list.append(self, self._self_wrapped[-1])

    def extend(self, values: Iterable[Any]) -> None:
        """Adds items at the end."""
        for value in list(values):
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            self._set_slice(key, value)
            return
        if len(self._self_wrapped) != list.__len__(self):
            self._look()
        old = self._self_wrapped[key]
        if isinstance(old, Trackable) and value is not old:
            self._broken("__setitem__")
        item = self._tracked(value, range(len(self._self_wrapped))[key])
        self._self_wrapped[key] = item
        list.__setitem__(self, key, item)

    def _set_slice(self, key: slice, values: Iterable[Any]) -> None:
        self._look()
        before = list(self._self_wrapped)
        after = list(before)
        after[key] = values
        # What is tracked keeps its place: other items may take the places of untracked ones.
        for place, old in enumerate(before):
            if isinstance(old, Trackable) and (place >= len(after) or after[place] is not old):
                self._broken("__setslice__")
        self._track_from(after, before)
        self._self_wrapped[:] = after
        self._see()

    def __imul__(self, n: SupportsIndex) -> Self:
        if n.__index__() <= 0:
            self._change(list.clear, by="__imul__")
        items = list(self._self_wrapped)
        for _ in range(n.__index__() - 1):
            self.extend(items)
        return self

    # ------------------------------------------------------------ what cannot
    def __delitem__(self, key: Any) -> None:
        by = "__delslice__" if isinstance(key, slice) else "__delitem__"
        self._change(list.__delitem__, key, by=by)

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Adds an item anywhere, after which the list cannot be saved."""
        self._change(list.insert, index, _unmarked(wrap(value)))

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Takes an item out, after which the list cannot be saved."""
        return self._change(list.pop, index)

    def remove(self, value: Any) -> None:
        """Takes an item out, after which the list cannot be saved."""
        self._change(list.__delitem__, self._self_wrapped.index(value), by="remove")

    def clear(self) -> None:
        """Takes all items out, after which the list cannot be saved."""
        self._change(list.clear)

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Orders the items, after which the list cannot be saved."""
        ordered = sorted(self._self_wrapped, key=key, reverse=reverse)
        self._change(list.__setitem__, slice(None), ordered, by="sort")

    def reverse(self) -> None:
        """Turns the order, after which the list cannot be saved."""
        self._change(list.reverse)


class DictWrapper(Wrapper, dict[Any, Any]):
    """A dict whose trackable values are dependencies, named by their keys.

    It takes the place of a dict that becomes an attribute. Values can be set anew and deleted;
    after a trackable one was popped, after any change to the dict that it wraps, and with a
    trackable value whose key is no string, saving raises ValueError.

    Args:
        wrapped_dict: the dict, or pairs for a new one.
    """

    _object_identifier = "trackable_dict_wrapper"
    _what = "dictionary"
    _why_it_is = "a dictionary wrapper constructed automatically on attribute assignment"
    # The class of what it wraps, and of what it holds itself.
    _plain_class: ClassVar[type[dict[Any, Any]]] = dict

    def __init__(self, wrapped_dict: Any = None) -> None:
        own = self._plain_class
        super().__init__(wrapped_dict if type(wrapped_dict) is own else own(wrapped_dict or ()))
        self._self_unnamed: set[Any] = set()
        for key, value in list(self._self_wrapped.items()):
            self._self_wrapped[key] = self._tracked(key, value)
        self._see()

    @property
    def _values(self) -> Iterable[Any]:
        return [self._self_wrapped[key] for key in sorted(self._self_wrapped, key=str)]

    def _seen(self) -> dict[Any, Any]:
        return {key: self._plain_class.__getitem__(self, key) for key in dict.__iter__(self)}

    def _see(self) -> None:
        self._plain_class.clear(self)
        for key, value in self._self_wrapped.items():
            self._plain_class.__setitem__(self, key, value)

    def _as_seen(self) -> bool:
        seen, now = self._seen(), self._self_wrapped
        return len(seen) == len(now) and all(k in now and same(now[k], seen[k]) for k in seen)

    def _look_at_length(self) -> None:
        if len(self._self_wrapped) != dict.__len__(self):
            self._look()

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        if self._self_unnamed:
            self._refuse(
                "The wrapped dictionary contains a non-string key which maps to a trackable object"
                f" or mutable data structure: {next(iter(self._self_unnamed))!r}."
            )
        return super()._checkpoint_dependencies

    def _tracked(self, key: Any, value: Any) -> Any:
        item = wrap(value)
        self._forget(key)
        if isinstance(item, Trackable):
            if isinstance(key, str):
                self._track_trackable(item, key, overwrite=True)
            else:
                self._self_unnamed.add(key)
        return _unmarked(item)

    def _forget(self, key: Any) -> None:
        self._maybe_initialize_trackable()
        self._self_dependencies.pop(key, None)
        self._self_unnamed.discard(key)

    def _taken(self, key: Any, by: str) -> None:
        """Keeps in mind that a value was taken out; it matters where a checkpoint would have it."""
        if isinstance(self._self_wrapped[key], Trackable):
            self._self_change = self._self_change or (
                f"The value of the key {key!r} was taken out ({by}), which breaks restoration on"
                " object creation."
            )

    # ------------------------------------------------------------ what is in it
    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or another one."""
        return self._self_wrapped.get(key, default)

    def keys(self) -> Any:
        """The keys."""
        return self._self_wrapped.keys()

    def values(self) -> Any:
        """The values."""
        return self._self_wrapped.values()

    def items(self) -> Any:
        """The pairs of keys and values."""
        return self._self_wrapped.items()

    def __or__(self, other: Any) -> Any:
        return self._self_wrapped | plain(other)

    def __ror__(self, other: Any) -> Any:
        return other | self._self_wrapped

    # ------------------------------------------------------------ what changes it
    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        self._look_at_length()
        item = self._tracked(key, value)
        self._self_wrapped[key] = item
        self._plain_class.__setitem__(self, key, item)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several values."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, which is set if it has none."""
        if key not in self._self_wrapped:
            self[key] = default
        return self._self_wrapped[key]

    def __delitem__(self, key: Any) -> None:
        self._look_at_length()
        del self._self_wrapped[key]
        self._plain_class.pop(self, key, None)
        self._forget(key)

    def pop(self, key: Any, *default: Any) -> Any:
        """Takes a value out; if it was trackable, the dict cannot be saved after that."""
        if key not in self._self_wrapped:
            return self._self_wrapped.pop(key, *default)
        value = self._self_wrapped[key]
        self._taken(key, "pop")
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        """Takes the last pair out; if its value was trackable, the dict cannot be saved."""
        if not self._self_wrapped:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._self_wrapped))
        self._taken(key, "popitem")
        value = self._self_wrapped[key]
        del self[key]
        return key, value

    def clear(self) -> None:
        """Takes all out; if a value was trackable, the dict cannot be saved after that."""
        for key in list(self._self_wrapped):
            self._taken(key, "clear")
            del self[key]


class OrderedDictWrapper(DictWrapper, OrderedDict[Any, Any]):
    """A `DictWrapper` of an OrderedDict, which it is itself.

    Args:
        wrapped_dict: the OrderedDict, or pairs for a new one.
    """

    _plain_class = OrderedDict

    def move_to_end(self, key: Any, last: bool = True) -> None:
        """Moves a pair to an end."""
        self._look_at_length()
        self._self_wrapped.move_to_end(key, last)
        self._see()

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        """Takes the last or the first pair out."""
        if not last and self._self_wrapped:
            self.move_to_end(next(iter(self._self_wrapped)))
        return super().popitem()


_WRAPPERS: dict[type, Callable[[Any], Any]] = {
    # Subclasses have a behaviour of their own, which a wrapper would hide.
    list: ListWrapper,
    dict: DictWrapper,
    OrderedDict: OrderedDictWrapper,
}
