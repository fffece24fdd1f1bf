"""Objects that object-based checkpoints save: each knows, by name, the objects that it depends on.

This is bookkeeping alone; `opdock.train.tracking` saves and restores. What a checkpoint says of an
object that does not exist yet is kept where the object will be named, and handed to it then.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self, SupportsIndex

__all__ = [
    "AutoTrackable", "DictWrapper", "ListWrapper", "NoDependency", "Trackable",
    "TrackableReference", "cached_per_instance", "no_automatic_dependency_tracking",
]  # fmt: skip

# The attribute of an object that is a variable, or stands for one.
VARIABLE_VALUE_KEY = "VARIABLE_VALUE"


class TrackableReference(NamedTuple):
    """A dependency: its name and the object."""

    name: str
    ref: Trackable


class NoDependency:
    """Marks a value that becomes an attribute without becoming a dependency.

    Args:
        value: the value.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method in which attributes that are set become no dependencies."""

    @functools.wraps(method)
    def untracked(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = getattr(self, "_self_setattr_tracking", True)
        self._self_setattr_tracking = False
        try:
            return method(self, *args, **kwargs)
        finally:
            self._self_setattr_tracking = before

    return untracked


def cached_per_instance(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Decorates a method without arguments: its value is kept for as long as the object lives."""
    cache: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @functools.wraps(f)
    def wrapped(item: Any) -> Any:
        output = cache.get(item)
        if output is None:
            output = cache[item] = f(item)
        return output

    wrapped.cache = cache  # type: ignore[attr-defined]
    return wrapped


class Trackable:
    """An object with dependencies that are objects of this kind."""

    _self_dependencies: dict[str, Trackable]
    # Positions in checkpoints, by the name of the dependency that is to come.
    _self_deferred: dict[str, list[Any]]
    # The number of the last restore that reached the object.
    _self_update_uid: int

    def _maybe_initialize_trackable(self) -> None:
        # Not in __init__, which subclasses may not call, and past __setattr__, which they may have.
        if "_self_dependencies" not in self.__dict__:
            self.__dict__.update(_self_dependencies={}, _self_deferred={}, _self_update_uid=-1)

    @property
    def _update_uid(self) -> int:
        self._maybe_initialize_trackable()
        return self._self_update_uid

    @property
    def _unconditional_checkpoint_dependencies(self) -> list[TrackableReference]:
        self._maybe_initialize_trackable()
        return [TrackableReference(n, d) for n, d in self._self_dependencies.items()]

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        """The dependencies, in the order in which they came."""
        return self._unconditional_checkpoint_dependencies

    @property
    def _deferred_dependencies(self) -> dict[str, list[Any]]:
        self._maybe_initialize_trackable()
        return self._self_deferred

    def _lookup_dependency(self, name: str) -> Trackable | None:
        self._maybe_initialize_trackable()
        return self._self_dependencies.get(name)

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Declares a dependency, and restores it if a checkpoint waits for it.

        Args:
            trackable: the object.
            name: its name, unique in this object.
            overwrite: take the place of another object of that name.

        Returns:
            The object.

        Raises:
            TypeError: it is not trackable.
            ValueError: the name is taken.
        """
        if not isinstance(trackable, Trackable):
            raise TypeError(
                f"Trackable._track_trackable() passed type {type(trackable)}, not a Trackable."
            )
        known = self._lookup_dependency(name)
        if known is not None and known is not trackable and not overwrite:
            raise ValueError(
                f"Called Trackable._track_trackable() with name='{name}', but a Trackable with this"
                " name is already declared as a dependency. Names must be unique (or"
                " overwrite=True)."
            )
        self._self_dependencies[name] = trackable
        if known is None:
            self._handle_deferred_dependencies(name, trackable)
        return trackable

    def _handle_deferred_dependencies(self, name: str, trackable: Trackable) -> None:
        """Restores a dependency from the checkpoints that were restored before it existed."""
        waiting = self._deferred_dependencies.pop(name, [])
        for position in sorted(waiting, key=lambda p: int(p.uid), reverse=True):
            position.restore(trackable)

    def _add_variable_with_custom_getter(
        self, name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
        getter: Callable[..., Any] | None = None, overwrite: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Makes a variable by `getter(name=..., shape=..., ...)` and declares it."""
        assert getter is not None
        if dtype is not None:
            kwargs["dtype"] = dtype
        made = getter(name=name, shape=shape, initializer=initializer, **kwargs)
        if overwrite and not isinstance(made, Trackable):
            return made
        return self._track_trackable(made, name, overwrite)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        """What of the object itself is saved, by attribute: saveables, or their makers."""
        return {}

    def _no_dependency(self, value: Any) -> Any:
        return value


class TrackableVariable(Trackable):
    """An object that is a variable: what is saved of it is its value."""

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {VARIABLE_VALUE_KEY: self}


class AutoTrackable(Trackable):
    """An object whose trackable attributes are its dependencies; lists and dicts are followed."""

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, name, NoDependency) is value:
            return
        if getattr(self, "_self_setattr_tracking", True):
            tracked = wrap(value)
            if isinstance(tracked, Trackable):
                self._track_trackable(tracked, name, overwrite=True)
            elif self._lookup_dependency(name) is not None:
                del self._self_dependencies[name]
            value = tracked
        super().__setattr__(name, value.value if isinstance(value, NoDependency) else value)

    def __delattr__(self, name: str) -> None:
        self._maybe_initialize_trackable()
        self._self_dependencies.pop(name, None)
        super().__delattr__(name)

    def _no_dependency(self, value: Any) -> Any:
        return NoDependency(value)


# ---------------------------------------------------------------- lists and dicts
def wrap(value: Any) -> Any:
    """A plain list or dict as one that tracks its items, and any other value as it is."""
    if type(value) is list:
        return ListWrapper(value)
    if type(value) is dict:
        return DictWrapper(value)
    return value


def _unmarked(value: Any) -> Any:
    return value.value if isinstance(value, NoDependency) else value


class ListWrapper(Trackable, list[Any]):
    """A list whose trackable items are dependencies, named by their places.

    It takes the place of a list that becomes an attribute. Items can be added at the end; after any
    other change a checkpoint could not tell which item is which, and saving raises.

    Args:
        wrapped_list: the list.
    """

    def __init__(self, wrapped_list: Iterable[Any] = ()) -> None:
        super().__init__()
        self._self_wrapped = wrapped_list
        self._self_replaced = False
        self.extend(wrapped_list)
        self._self_length = len(self)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        found = self._unconditional_checkpoint_dependencies
        if self._self_replaced:
            self._refuse(
                "A list element was replaced (__setitem__, __setslice__), deleted (__delitem__,"
                " __delslice__, pop), or moved (sort, reverse, insert)"
            )
        wrapped = self._self_wrapped
        if isinstance(wrapped, list) and len(wrapped) != self._self_length:
            self._refuse("The wrapped list was modified outside the wrapper")
        return found

    def _refuse(self, why: str) -> None:
        raise ValueError(
            f"Unable to save the object {self} (a list wrapper constructed to track trackable"
            f" TensorFlow objects). {why}. If you don't need this list checkpointed, wrap it in a"
            " tf.contrib.checkpoint.NoDependency object; it will be automatically un-wrapped and"
            " subsequently ignored."
        )

    def _tracked(self, value: Any, place: int) -> Any:
        item = wrap(value)
        if isinstance(item, Trackable):
            self._track_trackable(item, str(place), overwrite=True)
        return _unmarked(item)

    def append(self, value: Any) -> None:
        """Adds an item at the end."""
        super().append(self._tracked(value, len(self)))

    def extend(self, values: Iterable[Any]) -> None:
        """Adds items at the end."""
        for value in values:
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        before = list(self)
        super().__setitem__(key, value)
        # What is tracked keeps its place: other items may take the places of untracked ones.
        for place, old in enumerate(before):
            if isinstance(old, Trackable) and self[place : place + 1] != [old]:
                self._self_replaced = True
        for place, item in enumerate(self):
            if place >= len(before) or item is not before[place]:
                super().__setitem__(place, self._tracked(item, place))

    def __delitem__(self, key: Any) -> None:
        self._self_replaced = True
        super().__delitem__(key)

    def __imul__(self, n: SupportsIndex) -> Self:
        items = list(self)
        if n.__index__() <= 0:
            self.clear()
        for _ in range(n.__index__() - 1):
            self.extend(items)
        return self

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Adds an item anywhere, after which the list cannot be saved."""
        self._self_replaced = True
        super().insert(index, value)

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Takes an item out, after which the list cannot be saved."""
        self._self_replaced = True
        return super().pop(index)

    def remove(self, value: Any) -> None:
        """Takes an item out, after which the list cannot be saved."""
        self._self_replaced = True
        super().remove(value)

    def sort(self, **kwargs: Any) -> None:
        """Orders the items, after which the list cannot be saved."""
        self._self_replaced = True
        super().sort(**kwargs)

    def reverse(self) -> None:
        """Turns the order, after which the list cannot be saved."""
        self._self_replaced = True
        super().reverse()

    def clear(self) -> None:
        """Takes all items out, after which the list cannot be saved."""
        self._self_replaced = True
        super().clear()


class DictWrapper(Trackable, dict[Any, Any]):
    """A dict whose trackable values are dependencies, named by their keys.

    It takes the place of a dict that becomes an attribute.

    Args:
        wrapped_dict: the dict.
    """

    def __init__(self, wrapped_dict: dict[Any, Any] | None = None) -> None:
        super().__init__()
        self.update(wrapped_dict or {})

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        for key, value in self.items():
            if isinstance(value, Trackable) and not isinstance(key, str):
                raise ValueError(
                    f"Unable to save the object {self} (a dictionary wrapper constructed"
                    " automatically on attribute assignment). The wrapped dictionary contains a"
                    f" non-string key which maps to a trackable object or mutable data structure:"
                    f" {key!r}."
                )
        return self._unconditional_checkpoint_dependencies

    def __setitem__(self, key: Any, value: Any) -> None:
        item = wrap(value)
        self._maybe_initialize_trackable()
        if isinstance(item, Trackable) and isinstance(key, str):
            self._track_trackable(item, key, overwrite=True)
        else:
            self._self_dependencies.pop(key, None)
        super().__setitem__(key, _unmarked(item))

    def __delitem__(self, key: Any) -> None:
        self._maybe_initialize_trackable()
        self._self_dependencies.pop(key, None)
        super().__delitem__(key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several items."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The item, set if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        """Takes an item out."""
        self._maybe_initialize_trackable()
        self._self_dependencies.pop(key, None)
        return super().pop(key, *default)
