"""Objects that object-based checkpoints save: each knows, by name, the objects that it depends on.

This is bookkeeping alone; `opdock.train.tracking` saves and restores. What a checkpoint says of an
object that does not exist yet is kept where the object will be named, and handed to it then.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = [
    "DelegatingTrackable", "NoDependency", "NotTrackable", "Trackable", "TrackableReference",
    "Weighted", "cached_per_instance", "no_automatic_dependency_tracking",
    "no_automatic_dependency_tracking_scope",
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


@contextlib.contextmanager
def no_automatic_dependency_tracking_scope(obj: Any) -> Iterator[None]:
    """Inside, attributes that are set on an object become no dependencies."""
    before = getattr(obj, "_self_setattr_tracking", True)
    obj._self_setattr_tracking = False
    try:
        yield
    finally:
        obj._self_setattr_tracking = before


def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method in which attributes that are set become no dependencies."""

    @functools.wraps(method)
    def untracked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with no_automatic_dependency_tracking_scope(self):
            return method(self, *args, **kwargs)

    untracked._tf_decorator = True  # type: ignore[attr-defined]
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
    # What kind of object it is in a model of `tf.saved_model.save`, and what more is to be known.
    _object_identifier = "_generic_user_object"
    _tracking_metadata = ""

    def _maybe_initialize_trackable(self) -> None:
        # Not in __init__, which subclasses may not call, and past __setattr__, which they may have.
        if "_self_dependencies" not in self.__dict__:
            self.__dict__.update(_self_dependencies={}, _self_deferred={}, _self_update_uid=-1)

    @property
    def _setattr_tracking(self) -> bool:
        """Whether attributes that are set become dependencies, as libraries ask and say."""
        return getattr(self, "_self_setattr_tracking", True)

    @_setattr_tracking.setter
    def _setattr_tracking(self, value: bool) -> None:
        self._self_setattr_tracking = value

    @property
    def _update_uid(self) -> int:
        self._maybe_initialize_trackable()
        return self._self_update_uid

    @property
    def _unconditional_checkpoint_dependencies(self) -> list[TrackableReference]:
        self._maybe_initialize_trackable()
        return [TrackableReference(n, d) for n, d in self._self_dependencies.items()]

    @property
    def _unconditional_dependency_names(self) -> dict[str, Trackable]:
        """The dependencies by name; libraries add to it what they make while one is looked up."""
        self._maybe_initialize_trackable()
        return self._self_dependencies

    @property
    def _self_unconditional_dependency_names(self) -> dict[str, Trackable]:
        """The same, as libraries newer than TensorFlow 1 ask for it."""
        return self._unconditional_dependency_names

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        """The dependencies, in the order in which they came."""
        return self._unconditional_checkpoint_dependencies

    @property
    def _deferred_dependencies(self) -> dict[str, list[Any]]:
        self._maybe_initialize_trackable()
        return self._self_deferred

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The dependencies by name: what libraries override that are newer than TensorFlow 1.

        Args:
            save_type: "checkpoint" or "savedmodel".
            kwargs: what they hand to each other.
        """
        return dict(self._checkpoint_dependencies)

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Trackable | None:
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

    def _delete_tracking(self, name: str) -> None:
        """Forgets a dependency; without one of the name nothing happens."""
        self._maybe_initialize_trackable()
        self._self_dependencies.pop(name, None)

    def _handle_deferred_dependencies(self, name: str, trackable: Trackable) -> None:
        """Restores a dependency from the checkpoints that were restored before it existed."""
        waiting = self._deferred_dependencies.pop(name, [])
        for position in sorted(waiting, key=lambda p: int(p.restore_uid), reverse=True):
            position.restore(trackable)

    def _list_extra_dependencies_for_serialization(self, cache: dict[Any, Any]) -> dict[str, Any]:
        """Objects that a model has of this one beside its dependencies, by name.

        Args:
            cache: what objects that override it keep while a model is written.
        """
        return {}

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


class NotTrackable:
    """Marks a class of objects that checkpoints refuse, though they inherit being trackable."""


class Weighted:
    """All names for the variables of an object that tells which are trained and which are not."""

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers update; none where the object is not trainable."""
        raise NotImplementedError

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that optimizers do not update."""
        raise NotImplementedError

    @property
    def weights(self) -> list[Any]:
        """All variables, the trainable ones first."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    @property
    def trainable_variables(self) -> list[Any]:
        """`trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """`non_trainable_weights`."""
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:
        """`weights`."""
        return self.weights


class DelegatingTrackable:
    """A mixin: for checkpoints, an object that wraps another is the other.

    Args:
        trackable_obj: the other; where an object itself is none, it must be set before it is saved.
    """

    def __init__(self, trackable_obj: Any) -> None:
        self._trackable = trackable_obj

    def __getattribute__(self, name: str) -> Any:
        if name in _DELEGATED:
            return getattr(self._trackable, name)
        return super().__getattribute__(name)


_DELEGATED = frozenset({
    "_checkpoint_dependencies", "_deferred_dependencies", "_gather_saveables_for_checkpoint",
    "_handle_deferred_dependencies", "_lookup_dependency", "_maybe_initialize_trackable",
    "_self_update_uid", "_trackable_children", "_unconditional_checkpoint_dependencies",
    "_update_uid",
})  # fmt: skip
