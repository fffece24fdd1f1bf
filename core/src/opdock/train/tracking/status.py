"""What restoring an object-based checkpoint returns: checks, and the ops that are to run."""

from __future__ import annotations

from typing import Any, Self

from opdock import errors
from opdock.graph.nodes.default_session import get_provided_session
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.tracked_containers import DictWrapper, ListWrapper
from opdock.train.saver import Saver
from opdock.train.tracking.object_graph import list_objects
from opdock.train.tracking.restoration import Restoration, node_names

__all__ = [
    "CheckpointLoadStatus",
    "InitializationOnlyStatus",
    "NameBasedSaverStatus",
    "get_session",
    "streaming_restore",
]


def get_session() -> Any:
    """The default session, or the one that a library provides.

    Raises:
        FailedPreconditionError: there is none.
    """
    session = get_provided_session()
    if session is None:
        raise errors.FailedPreconditionError(
            None,
            None,
            "An object-based checkpoint is saved and restored in a session: give one, or make one"
            " the default with `with session.as_default():`",
        )
    return session


def streaming_restore(status: Any, session: Any = None) -> None:
    """Runs the ops of a restore, and leaves the rest to the variables that are made later.

    Args:
        status: what `restore` returned.
        session: where to run them; by default the default one.

    Raises:
        NotImplementedError: the checkpoint is one of names alone.
    """
    if isinstance(status, NameBasedSaverStatus):
        raise NotImplementedError(
            "Streaming restore not supported from name-based checkpoints when graph building. File "
            "a feature request if this limitation bothers you. As a workaround, consider either "
            "using tf.train.Checkpoint to load name-based checkpoints or enabling eager execution."
        )
    if isinstance(status, CheckpointLoadStatus):
        status.stream(session or get_session())
    else:
        status.run_restore_ops(session=session or get_session())


def _initializers(root: Trackable, uid: int) -> list[tuple[Trackable, Any]]:
    """The initializers of the objects behind one, but of those that a later restore reached.

    Args:
        root: the object.
        uid: the number of the restore that asks.
    """
    found = ((o, getattr(o, "initializer", None)) for o in list_objects(root))
    return [(o, i) for o, i in found if i is not None and getattr(o, "_update_uid", -1) < uid]


class CheckpointLoadStatus:
    """The restore of an object-based checkpoint.

    Args:
        restoration: the restore.
        root: the object that was restored.
        feeds: what to feed to the restore ops.
    """

    def __init__(self, restoration: Restoration, root: Trackable, feeds: dict[Any, Any]) -> None:
        self._restoration = restoration
        self._root = root
        self._feeds = feeds

    def stream(self, session: Any) -> None:
        """Runs the ops of the restore, and those of objects that come later when they come."""
        self.run_restore_ops(session=session)
        self._restoration.on_new_ops = lambda ops: session.run(ops, self._feeds)

    def assert_consumed(self) -> Self:
        """Checks that program and checkpoint have the same objects.

        Raises:
            AssertionError: an object of one is not in the other.
        """
        self.assert_existing_objects_matched()
        restoration = self._restoration
        names = node_names(restoration.proto)
        for number, node in enumerate(restoration.proto.nodes):
            if number not in restoration.objects:
                raise AssertionError(f"Unresolved object in checkpoint {names[number]}: {node}")
        if restoration.slots:
            raise AssertionError(f"Unresolved slot restorations: {restoration.slots}")
        if restoration.unused_attributes:
            unused = "\n".join(
                f"{names[number]} ({restoration.objects[number]}): {attributes}"
                for number, attributes in restoration.unused_attributes.items()
            )
            raise AssertionError(
                "Unused attributes in these objects (the attributes exist in the checkpoint but"
                f" were not restored):\n{unused}"
            )
        return self

    def assert_existing_objects_matched(self) -> Self:
        """Checks that all objects of the program are in the checkpoint.

        Raises:
            AssertionError: one is not.
        """
        restoration = self._restoration
        for number, node in enumerate(restoration.proto.nodes):
            found = restoration.objects.get(number)
            if found is not None and found._update_uid < restoration.uid:
                raise AssertionError(f"Object not assigned a value from checkpoint: {node}")
        matched = {id(o) for o in restoration.objects.values()}
        unused = []
        for found in list_objects(self._root):
            empty = isinstance(found, (ListWrapper, DictWrapper))
            if empty and not found._checkpoint_dependencies:
                continue
            if id(found) not in matched:
                unused.append(found)
        if unused:
            raise AssertionError(
                f"Object(s) in the Python program not found in the checkpoint: {unused}"
            )
        return self

    def assert_nontrivial_match(self) -> Self:
        """Checks that the root is not all that was restored.

        Raises:
            AssertionError: it is.
        """
        if len(self._restoration.objects) <= 1:
            unused = list_objects(self._root)[1:]
            if unused:
                raise AssertionError(
                    "Nothing except the root object matched a checkpointed value. Typically this"
                    " means that the checkpoint does not match the Python program. The following"
                    f" objects have no matching checkpointed value: {unused}"
                )
            raise AssertionError(
                f"Nothing to load. No dependencies have been added to {self._root} yet."
            )
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Gives the variables their values, if they have not got them at once.

        Args:
            session: the session, the default one when None.
        """
        if executing_eagerly():
            return
        session = session or get_session()
        session.run(self._restoration.restore_ops, feed_dict=self._feeds)

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives the variables their values, and initializes those that are not in the checkpoint.

        Args:
            session: the session, the default one when None.
        """
        if executing_eagerly():
            return
        session = session or get_session()
        matched = {id(o) for o in self._restoration.objects.values()}
        made = _initializers(self._root, self._restoration.uid)
        rest = [i for o, i in made if id(o) not in matched]
        self.run_restore_ops(session)
        session.run(rest)

    def expect_partial(self) -> Self:
        """Says that the checkpoint may hold more than the program takes, so that nothing warns."""
        self._restoration.expect_partial()
        return self


class InitializationOnlyStatus:
    """What restoring no checkpoint returns: everything is initialized.

    Args:
        root: the object.
        uid: the number of the restore.
    """

    def __init__(self, root: Trackable, uid: int) -> None:
        self._root = root
        self._uid = uid

    def _refuse(self) -> AssertionError:
        return AssertionError(
            "No checkpoint specified (save_path=None); nothing is being restored."
        )

    def assert_consumed(self) -> Self:
        """Raises AssertionError: there is no checkpoint."""
        raise self._refuse()

    def assert_existing_objects_matched(self) -> Self:
        """Raises AssertionError: there is no checkpoint."""
        raise self._refuse()

    def assert_nontrivial_match(self) -> Self:
        """Raises AssertionError: there is no checkpoint."""
        raise self._refuse()

    def run_restore_ops(self, session: Any = None) -> None:
        """Raises AssertionError: there is nothing to run."""
        raise AssertionError(
            "No checkpoint specified, so no restore ops are available (save_path=None to"
            " Saver.restore)."
        )

    def initialize_or_restore(self, session: Any = None) -> None:
        """Initializes the variables, but those that a later restore reached.

        Where operations run as they are made, all variables have values.
        """
        if executing_eagerly():
            return
        session = session or get_session()
        session.run([initializer for _, initializer in _initializers(self._root, self._uid)])

    def expect_partial(self) -> Self:
        """Changes nothing."""
        return self


class NameBasedSaverStatus:
    """The restore of a checkpoint that `tf.train.Saver` wrote: variables are found by their names.

    Args:
        names: the tensors of the checkpoint.
        save_path: its prefix.
        root: the object.
    """

    def __init__(self, names: set[str], save_path: str, root: Trackable) -> None:
        self._names = names
        self._path = save_path
        self._root = root

    def _variables(self) -> list[Any]:
        return [o for o in list_objects(self._root) if hasattr(o, "initializer")]

    def assert_consumed(self) -> Self:
        """Checks that program and checkpoint have the same variables.

        Raises:
            AssertionError: a variable of one is not in the other.
        """
        self.assert_existing_objects_matched()
        unused = self._names - {v.op.name for v in self._variables()}
        if unused:
            raise AssertionError(f"Some objects in the checkpoint were not used: {sorted(unused)}")
        return self

    def assert_existing_objects_matched(self) -> Self:
        """Checks that all variables of the program are in the checkpoint.

        Raises:
            AssertionError: one is not.
        """
        missing = [v.op.name for v in self._variables() if v.op.name not in self._names]
        if missing:
            raise AssertionError(f"Some objects had attributes which were not restored: {missing}")
        return self

    def assert_nontrivial_match(self) -> Self:
        """Checks that a variable was found.

        Raises:
            AssertionError: none was.
        """
        if not any(v.op.name in self._names for v in self._variables()):
            raise AssertionError(f"No variable of the program is in the checkpoint {self._path}")
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Gives the variables that are in the checkpoint their values."""
        found = [v for v in self._variables() if v.op.name in self._names]
        if found:
            if not executing_eagerly():
                session = session or get_session()
            Saver(found).restore(session, self._path)

    def initialize_or_restore(self, session: Any = None) -> None:
        """Like `run_restore_ops`; other variables are initialized."""
        if executing_eagerly():
            self.run_restore_ops()
            return
        session = session or get_session()
        session.run([v.initializer for v in self._variables() if v.op.name not in self._names])
        self.run_restore_ops(session)

    def expect_partial(self) -> Self:
        """Changes nothing."""
        return self
