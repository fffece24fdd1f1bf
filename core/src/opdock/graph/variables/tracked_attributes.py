"""Objects whose attributes are their dependencies."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from opdock.graph.variables.trackable import NoDependency, Trackable
from opdock.graph.variables.tracked_containers import wrap

__all__ = ["AutoTrackable", "SavedFunction", "sticky_attribute_assignment"]


class SavedFunction:
    """A function that a model keeps with the object whose attribute it is."""


class AutoTrackable(Trackable):
    """An object whose trackable attributes are its dependencies; lists and dicts are followed."""

    # Properties that are no functions and make what they give: who saves does not ask for them.
    _made_when_asked: ClassVar[frozenset[str]] = frozenset()

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
        if save_type == "savedmodel":
            # Once in a save: a property may give another function each time.
            known = kwargs.get("cache", {})
            key = "functions", id(self)
            if key not in known:
                known[key] = self._saved_functions()
            found |= known[key]
        return found

    def _saved_functions(self) -> dict[str, SavedFunction]:
        names = [name for name in dir(self) if name not in self._made_when_asked]
        values = {name: _attribute(self, name) for name in names}
        return {k: v for k, v in values.items() if isinstance(v, SavedFunction)}


def _attribute(owner: AutoTrackable, name: str) -> Any:
    """An attribute, or None where it cannot be asked for, as with a property that raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Nobody uses what is asked for here.
            return getattr(owner, name, None)
    except Exception:
        return None


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
