"""Objects whose attributes are their dependencies, and the lists and dicts among those.

A checkpoint knows the items of a list by their places and those of a dict by their keys. Both tell
the variables, updates and losses of the layers in them, as layers do.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Self, SupportsIndex

from opdock.graph.variables.trackable import (
    NoDependency,
    Trackable,
    TrackableReference,
    TrackableVariable,
    Weighted,
)

__all__ = [
    "AutoTrackable", "DictWrapper", "ListWrapper", "SavedFunction", "TrackableDataStructure",
    "sticky_attribute_assignment", "wrap",
]  # fmt: skip


class SavedFunction:
    """A function that a model keeps with the object whose attribute it is."""


class AutoTrackable(Trackable):
    """An object whose trackable attributes are its dependencies; lists and dicts are followed."""

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, name, NoDependency) is value:
            return
        if getattr(self, "_self_setattr_tracking", True):
            value = sticky_attribute_assignment(self, name, value)
            self._maybe_initialize_trackable()
            if self._self_dependencies.get(name) is not value:
                self._self_dependencies.pop(name, None)
        super().__setattr__(name, value.value if isinstance(value, NoDependency) else value)

    def __delattr__(self, name: str) -> None:
        self._maybe_initialize_trackable()
        self._self_dependencies.pop(name, None)
        super().__delattr__(name)

    def _no_dependency(self, value: Any) -> Any:
        return NoDependency(value)

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The dependencies by name, and in a model the functions: what overrides it may hide some.

        Args:
            save_type: "checkpoint" or "savedmodel".
            kwargs: what those who override it hand to each other.
        """
        found = super()._trackable_children(save_type, **kwargs)
        for name in dir(self) if save_type == "savedmodel" else ():
            # To ask a property may make what it gives, such as a checkpoint's counter.
            if not isinstance(inspect.getattr_static(self, name, None), property):
                value = getattr(self, name, None)
                if isinstance(value, SavedFunction):
                    found[name] = value
        return found


def sticky_attribute_assignment(trackable: Trackable, name: str, value: Any) -> Any:
    """Declares what becomes an attribute as a dependency of its name, if it is trackable.

    Returns:
        What the attribute is to be: a list or dict that tracks its items in the place of a plain
        one, and what a `NoDependency` holds.
    """
    if isinstance(value, NoDependency):
        return value.value
    tracked = wrap(value)
    if isinstance(tracked, Trackable):
        trackable._track_trackable(tracked, name, overwrite=True)
    return tracked


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


class TrackableDataStructure(Weighted, Trackable):
    """An object that holds trackable ones; two are equal if they are the same object."""

    trainable = True

    @property
    def _own_variables(self) -> list[Any]:
        return [v for v in self._values if isinstance(v, TrackableVariable)]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def _values(self) -> Iterable[Any]:
        """The objects."""
        raise NotImplementedError("Abstract method")

    def _track_value(self, value: Any, name: str) -> Any:
        """Declares an item; ValueError where it is not trackable."""
        item = wrap(value)
        if not isinstance(item, Trackable):
            raise ValueError(
                "Only trackable objects (such as Layers or Optimizers) may be stored in a "
                f"{type(self).__name__} object. Got {item}, which does not inherit from Trackable."
            )
        return self._track_trackable(item, name, overwrite=True)

    # ------------------------------------------------------------ what is in it
    @property
    def _parts(self) -> list[Any]:
        """The items that have weights of their own, containers too."""
        return [v for v in self._values if hasattr(type(v), "trainable_weights")]

    @property
    def layers(self) -> list[Any]:
        """The layers, those of containers in it too, each once."""
        found: dict[int, Any] = {}
        for part in self._parts:
            inner = part.layers if isinstance(part, TrackableDataStructure) else [part]
            found |= {id(layer): layer for layer in inner if id(layer) not in found}
        return list(found.values())

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers update; none, if `trainable` is False."""
        if not self.trainable:
            return []
        own = [v for v in self._own_variables if v.trainable]
        return [v for part in self._parts for v in part.trainable_weights] + own

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables; all, if `trainable` is False."""
        own = [v for v in self._own_variables if not v.trainable]
        found = [v for part in self._parts for v in part.non_trainable_weights] + own
        if self.trainable:
            return found
        own = [v for v in self._own_variables if v.trainable]
        return [v for part in self._parts for v in part.trainable_weights] + own + found

    @property
    def updates(self) -> list[Any]:
        """The updates of the layers."""
        return [u for layer in self.layers for u in getattr(layer, "updates", ())]

    @property
    def losses(self) -> list[Any]:
        """The losses of the layers."""
        return [loss for layer in self.layers for loss in getattr(layer, "losses", ())]


class ListWrapper(TrackableDataStructure, list[Any]):
    """A list whose trackable items are dependencies, named by their places.

    It takes the place of a list that becomes an attribute. Items can be added at the end; after any
    other change a checkpoint could not tell which item is which, and saving raises.

    Args:
        wrapped_list: the list.
    """

    _object_identifier = "trackable_list_wrapper"

    def __init__(self, wrapped_list: Iterable[Any] = ()) -> None:
        super().__init__()
        self._self_wrapped = wrapped_list
        self._self_replaced = False
        self.extend(wrapped_list)
        self._self_length = len(self)

    __eq__ = list.__eq__

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    @property
    def _values(self) -> Iterable[Any]:
        return self

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


class DictWrapper(TrackableDataStructure, dict[Any, Any]):
    """A dict whose trackable values are dependencies, named by their keys.

    It takes the place of a dict that becomes an attribute.

    Args:
        wrapped_dict: the dict.
    """

    _object_identifier = "trackable_dict_wrapper"

    def __init__(self, wrapped_dict: dict[Any, Any] | None = None) -> None:
        super().__init__()
        self.update(wrapped_dict or {})

    __eq__ = dict.__eq__

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    @property
    def _values(self) -> Iterable[Any]:
        return [self[key] for key in sorted(self, key=str)]

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
