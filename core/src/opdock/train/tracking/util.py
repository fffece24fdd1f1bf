"""`tf.train.Checkpoint`: saves objects with all that they depend on, by names that stay."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from opdock import dtypes, errors
from opdock.eager.held import held_session
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import (
    control_dependencies,
    device,
    executing_eagerly,
    init_scope,
)
from opdock.graph.variables.template import capture_dependencies
from opdock.graph.variables.trackable import NoDependency, Trackable
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.graph.variables.tracked_containers import wrap
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_store import default_initializer
from opdock.io import filesystems, protos
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.io.files import as_path, make_directories
from opdock.io.parsing import parsed
from opdock.ops.composed.function import Function
from opdock.ops.identity import identity, placeholder_with_default
from opdock.ops.strings import string_join
from opdock.ops.support.control_mode import building_function
from opdock.train.checkpoint_management import update_checkpoint_state_internal
from opdock.train.saver import Saver
from opdock.train.saver_builder import BaseSaverBuilder
from opdock.train.tracking.base import OBJECT_GRAPH_PROTO_KEY, NoRestoreSaveable
from opdock.train.tracking.object_graph import (
    ObjectGraph,
    ObjectGraphView,
    Saveables,
    list_objects,
)
from opdock.train.tracking.restoration import Position, Restoration, restore_numbers
from opdock.train.tracking.status import (
    CheckpointLoadStatus,
    InitializationOnlyStatus,
    NameBasedSaverStatus,
    get_session,
)

__all__ = [
    "Checkpoint", "CheckpointLoadStatus", "InitializationOnlyStatus", "NameBasedSaverStatus",
    "TrackableSaver", "add_variable", "capture_dependencies", "frozen_saver", "gather_initializers",
    "list_objects", "object_metadata",
]  # fmt: skip


def object_metadata(save_path: Any) -> Any:
    """The graph of objects in a checkpoint.

    Args:
        save_path: the checkpoint's prefix.

    Returns:
        A `TrackableObjectGraph`.

    Raises:
        ValueError: the checkpoint has none.
    """
    try:
        data = NewCheckpointReader(save_path).get_tensor(OBJECT_GRAPH_PROTO_KEY)
    except errors.NotFoundError:
        raise ValueError(
            f'The specified checkpoint "{save_path}" does not appear to be object-based (it is'
            f' missing the key "{OBJECT_GRAPH_PROTO_KEY}"). Likely it was created with a name-based'
            " saver and does not contain an object dependency graph."
        ) from None
    return parsed(protos.TrackableObjectGraph, data, f"the object graph of {save_path}")


def gather_initializers(root_trackable: Trackable) -> list[Any]:
    """The initializers of all objects that can be reached from one."""
    found = (getattr(o, "initializer", None) for o in list_objects(root_trackable))
    return [i for i in found if i is not None]


def add_variable(
    trackable: Trackable, name: str, shape: Any = None, dtype: Any = dtypes.float32,
    initializer: Any = None, trainable: bool = True,
) -> Any:  # fmt: skip
    """Makes a variable that is a dependency of an object.

    Args:
        trackable: the object.
        name: name of the dependency and of the variable.
        shape: the variable's shape, unless `initializer` is a value.
        dtype: its type.
        initializer: a value, or an initializer.
        trainable: whether optimizers update it.

    Returns:
        The variable.

    Raises:
        ValueError: both a value and a shape are given.
    """

    def make(name: str, shape: Any, initializer: Any, **kwargs: Any) -> Any:
        with init_scope():
            value = _initial(name, initializer, shape, dtype)
            return Variable(value, name=name, dtype=dtype, use_resource=True, **kwargs)

    return trackable._add_variable_with_custom_getter(
        name, shape, None, initializer, make, trainable=trainable
    )


def _initial(name: str, initializer: Any, shape: Any, dtype: Any) -> Any:
    """An initial value, or what makes it: a default one where nobody says which."""
    if initializer is None:
        initializer = default_initializer(name, dtypes.as_dtype(dtype))
    if isinstance(initializer, type):
        initializer = initializer(dtype=dtype)
    if callable(initializer):
        return lambda: initializer(shape, dtype=dtype)
    if shape is not None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    return initializer


def _checkpoint_path(file_prefix: Any, number: Any) -> str:
    """The prefix of a checkpoint, whose directory there is then."""
    path = as_path(file_prefix)
    if number is not None:
        path = f"{path}-{int(number)}"
    directory = filesystems.parent(path)
    if directory:
        make_directories(directory)
    return path


class TrackableSaver:
    """Saves and restores an object with all that it depends on.

    Args:
        graph_view: the objects behind it.
        graph: gives the objects that are saved; by default all of the view.
    """

    def __init__(
        self, graph_view: ObjectGraphView, graph: Callable[[], ObjectGraph] | None = None
    ) -> None:
        self._view = graph_view
        self._graph = graph or graph_view.graph
        self._prefix: Tensor | None = None
        # The ops serve for as long as the graph of objects is the same.
        self._saved: tuple[bytes, Tensor, dict[Any, Any]] | None = None
        self._saveables = Saveables()
        self._restore_ops: dict[str, Any] = {}

    def _prefix_tensor(self) -> Tensor:
        if self._prefix is None:
            with init_scope(), device("/cpu:0"):
                self._prefix = placeholder_with_default("model", shape=(), name="filename")
        return self._prefix

    def save(self, file_prefix: Any, checkpoint_number: Any = None, session: Any = None) -> Any:
        """Writes a checkpoint; in a function, has each of its calls write one.

        Args:
            file_prefix: prefix of the files.
            checkpoint_number: appended to it, if given.
            session: the session that holds the variables, the default one when None.

        Returns:
            The checkpoint's prefix, in a function a tensor.

        Raises:
            NotImplementedError: a function is to save what lives in Python.
        """
        if building_function():
            return self._save_in_function(file_prefix, checkpoint_number)
        with held_session(self) as held:
            return self._save(file_prefix, checkpoint_number, held or session or get_session())

    def _save_in_function(self, file_prefix: Any, checkpoint_number: Any) -> Tensor:
        """Adds operations that write a checkpoint of the objects that there are now."""
        if isinstance(file_prefix, Tensor):
            number = [] if checkpoint_number is None else [f"-{int(checkpoint_number)}"]
            prefix = string_join([file_prefix, *number])
        else:
            prefix = constant(_checkpoint_path(file_prefix, checkpoint_number))
        graph, saveables, feeds = self._graph().serialize(Saveables())
        if feeds:
            raise NotImplementedError(
                "A function cannot save objects whose state lives in Python: it is read when a "
                "session runs. Call the checkpoint's write() outside of functions."
            )
        with device("/cpu:0"):
            described = constant(graph.SerializeToString(deterministic=True), dtypes.string)
            saveables.append(NoRestoreSaveable(described, OBJECT_GRAPH_PROTO_KEY))
            with control_dependencies([BaseSaverBuilder().save_op(prefix, saveables)]):
                return identity(prefix)

    def _save(self, file_prefix: Any, checkpoint_number: Any, session: Any) -> str:
        path = _checkpoint_path(file_prefix, checkpoint_number)
        graph, saveables, feeds = self._graph().serialize(self._saveables)
        data = graph.SerializeToString(deterministic=True)
        prefix = self._prefix_tensor()
        if self._saved is None or self._saved[0] != data:
            with init_scope(), device("/cpu:0"):
                described = constant("", dtypes.string)
                saveables.append(NoRestoreSaveable(described, OBJECT_GRAPH_PROTO_KEY))
                write = BaseSaverBuilder().save_op(prefix, saveables)
                with control_dependencies([write]):
                    self._saved = data, identity(prefix), {described: data}
        _, done, described_feed = self._saved
        session.run(done, {prefix: path, **described_feed, **feeds})
        return path

    def restore(self, save_path: Any) -> Any:
        """Restores the object, and whatever is attached to it later.

        Variables get their values when the ops of the returned status run.

        Args:
            save_path: a checkpoint's prefix, or None for none.

        Returns:
            A status: `CheckpointLoadStatus`, `NameBasedSaverStatus` for a checkpoint of
            `tf.train.Saver`, `InitializationOnlyStatus` for no checkpoint.

        Raises:
            NotFoundError: there is no such checkpoint.
        """
        root = self._view.root
        if save_path is None:
            return InitializationOnlyStatus(root, next(restore_numbers))
        path = as_path(save_path)
        reader = NewCheckpointReader(path)
        if not reader.has_tensor(OBJECT_GRAPH_PROTO_KEY):
            names = set(reader.get_variable_to_shape_map())
            return NameBasedSaverStatus(names, path, root)
        data = reader.get_tensor(OBJECT_GRAPH_PROTO_KEY)
        proto = parsed(protos.TrackableObjectGraph, data, f"the object graph of {path}")
        with held_session(self) as held:
            prefix = self._prefix_tensor()
            restoration = Restoration(proto, reader, prefix, self._saveables, self._restore_ops)
            restoration.graph = None if held is None else held.graph
            Position(restoration, 0).restore(root)
            status = CheckpointLoadStatus(restoration, root, {prefix: path})
            if held is not None:
                held.run(restoration.restore_ops, {prefix: path})
                restoration.on_new_ops = lambda ops: held.run(ops, {prefix: path})
        return status


def frozen_saver(root_trackable: Trackable) -> Saver:
    """A saver of object-based checkpoints of an object and those behind it as they are now.

    Args:
        root_trackable: the object.

    Returns:
        A `tf.train.Saver`; it restores checkpoints of the same objects only.
    """
    return Saver(ObjectGraphView(root_trackable).frozen_saveable_objects(), max_to_keep=0)


class Checkpoint(AutoTrackable):
    """Objects that are saved together, by the names of the attributes that lead to them.

    Names in the graph do not matter. An object that is attached after `restore` is restored then.

    Args:
        **kwargs: the objects: variables, optimizers, layers, tables, other checkpoints, and lists
            and dicts of them; and functions, which keep nothing but may be exported.

    Raises:
        ValueError: an object cannot be tracked.
    """

    _made_when_asked = frozenset({"save_counter"})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, value in sorted(kwargs.items()):
            if not isinstance(wrap(value), (Trackable, NoDependency, Function)):
                raise ValueError(
                    "`Checkpoint` was expecting a trackable object (an object derived from"
                    f" `TrackableBase`), got {value}. If you believe this object should be"
                    " trackable (i.e. it is part of the TensorFlow Python API and manages state),"
                    " please open an issue."
                )
            setattr(self, name, value)
        self._save_counter: Any = None
        self._count: Any = None
        # Nothing of it keeps the checkpoint: when the program lets go of it, it is gone.
        self._saver = TrackableSaver(ObjectGraphView(weakref.ref(self)))

    def _maybe_create_save_counter(self) -> None:
        if self._save_counter is None:
            with device("/cpu:0"):
                made = add_variable(
                    self, "save_counter", dtype=dtypes.int64, initializer=0, trainable=False
                )
            self._save_counter = NoDependency(made)

    @property
    def save_counter(self) -> Any:
        """An int64 variable, the number of the last `save`."""
        self._maybe_create_save_counter()
        return self._save_counter

    def write(self, file_prefix: Any, session: Any = None) -> Any:
        """Writes a checkpoint, without a number and without a state file.

        In a function of `tf.function`, each call of that writes one.

        Args:
            file_prefix: prefix of the files.
            session: the session that holds the variables, the default one when None.

        Returns:
            The prefix, for `restore`; in a function a tensor.

        Raises:
            NotImplementedError: a function is to save what lives in Python.
        """
        return self._saver.save(file_prefix, session=session)

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """Writes a checkpoint under the next number, and names it in the directory's state file.

        Args:
            file_prefix: prefix of the files, before the number.
            session: the session that holds the variables, the default one when None.

        Returns:
            The checkpoint's prefix, for `restore`.

        Raises:
            NotImplementedError: a function is being built.
        """
        if building_function():
            raise NotImplementedError(
                "Calling tf.train.Checkpoint.save() from a function is not supported, as save() "
                "modifies saving metadata in ways not supported by TensorFlow Operations. Consider "
                "using tf.train.Checkpoint.write(), a lower-level API which does not update "
                "metadata. tf.train.latest_checkpoint and related APIs will not see this "
                "checkpoint."
            )
        if executing_eagerly():
            number = int(self.save_counter.assign_add(1).read_value())
            path: str = self.write(f"{as_path(file_prefix)}-{number}")
            update_checkpoint_state_internal(filesystems.parent(path), path, [path], None, True)
            return path
        session = session or get_session()
        new = self._save_counter is None
        counter = self.save_counter
        if new:
            session.run(counter.initializer)
        if self._count is None:
            self._count = NoDependency(counter.assign_add(1, read_value=True))
        path = self.write(f"{as_path(file_prefix)}-{session.run(self._count)}", session)
        update_checkpoint_state_internal(filesystems.parent(path), path, [path], None, True)
        return path

    def restore(self, save_path: Any) -> Any:
        """Restores the objects; see `TrackableSaver.restore`.

        Args:
            save_path: a checkpoint's prefix, or None for none.

        Returns:
            A status. Its `assert_consumed` checks that everything matched; its `run_restore_ops`
            and `initialize_or_restore` give the variables their values.
        """
        status = self._saver.restore(save_path)
        self._maybe_create_save_counter()
        return status
