"""TF 2's `tf.train.Checkpoint`, whose objects may be all that one object, the root, depends on."""

from __future__ import annotations

import weakref
from typing import Any

from opdock.graph.variables.trackable import NoDependency, Trackable
from opdock.train.tracking.util import Checkpoint

__all__ = ["RootedCheckpoint"]


class RootedCheckpoint(Checkpoint):
    """Objects that are saved together: those given by name, and those that a root depends on.

    Args:
        root: the object whose dependencies are saved as this one's, or a weak reference to it.
        **kwargs: more objects, by their names.

    Raises:
        ValueError: an object cannot be tracked.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root_reference: Any = NoDependency(root)
        super().__init__(**kwargs)

    @property
    def _root(self) -> Trackable | None:
        found: Any = self._root_reference
        return found() if isinstance(found, weakref.ref) else found

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        own, root = super()._trackable_children(save_type, **kwargs), self._root
        return own if root is None else {**root._trackable_children(), **own}

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Trackable | None:
        found = super()._lookup_dependency(name)
        root = self._root
        return root._lookup_dependency(name) if found is None and root is not None else found

    @property
    def _deferred_dependencies(self) -> dict[str, list[Any]]:
        """What waits for objects that the root will have waits at the root."""
        root = self._root
        return super()._deferred_dependencies if root is None else root._deferred_dependencies

    def write(self, file_prefix: Any, session: Any = None, options: Any = None) -> Any:
        """Writes a checkpoint, without a number and without a state file.

        Args:
            file_prefix: prefix of the files.
            session: the session that holds the variables, the default one when None.
            options: not used: they are about devices of TF 2's.

        Returns:
            The prefix, for `read`.
        """
        return super().write(file_prefix, session)

    def save(self, file_prefix: Any, session: Any = None, options: Any = None) -> str:
        """Writes a checkpoint under the next number; see `tf.train.Checkpoint.save`."""
        return super().save(file_prefix, session)

    def read(self, save_path: Any, options: Any = None) -> Any:
        """Restores what `write` wrote; see `TrackableSaver.restore`."""
        return self._saver.restore(save_path)

    def restore(self, save_path: Any, options: Any = None) -> Any:
        """Restores what `save` wrote; see `tf.train.Checkpoint.restore`."""
        return super().restore(save_path)
