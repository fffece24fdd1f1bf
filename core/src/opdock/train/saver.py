"""`tf.train.Saver`: variables to checkpoints and back, and which checkpoints to keep."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from opdock import errors
from opdock.eager.held import HeldSession, held_session, in_held_session
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.io import filesystems, protos
from opdock.io.files import as_path
from opdock.train import checkpoint_management
from opdock.train.saveable import all_saveable_objects, names_of
from opdock.train.saver_builder import BaseSaverBuilder, BulkSaverBuilder

__all__ = [
    "BaseSaverBuilder", "Saver", "export_meta_graph", "import_meta_graph",
    "import_meta_graph_with_return_elements",
]  # fmt: skip

_log = logging.getLogger("tensorflow")


class Saver:
    """Saves and restores variables.

    Args:
        var_list: a list of variables, or a dict from checkpoint keys to them; all global variables
            and saveable objects by default.
        reshape: restore values into variables of another shape with as many elements.
        sharded: write one file for each device.
        max_to_keep: how many recent checkpoints to keep; None or 0 keeps all.
        keep_checkpoint_every_n_hours: besides those, keep one every so many hours for good.
        name: name scope of the ops, "save" by default.
        restore_sequentially: restore one variable after another within a device.
        saver_def: take the ops that this `SaverDef` names instead of making new ones.
        builder: what makes the ops, a `BaseSaverBuilder`.
        defer_build: make the ops when `build` is called.
        allow_empty: accept that there is no variable.
        write_version: `SaverDef.V2`, or `SaverDef.V1` for the deprecated first format.
        pad_step_number: write steps with eight digits.
        save_relative_paths: write relative paths into the state file, so that the directory moves.
        filename: default of the file name tensor.

    Raises:
        TypeError: `var_list` holds something other than variables.
        ValueError: there are no variables, names clash, or `max_to_keep` is negative.
    """

    def __init__(
        self, var_list: Any = None, reshape: bool = False, sharded: bool = False,
        max_to_keep: int | None = 5, keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None, restore_sequentially: bool = False, saver_def: Any = None,
        builder: Any = None, defer_build: bool = False, allow_empty: bool = False,
        write_version: int = 2, pad_step_number: bool = False, save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:  # fmt: skip
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set"
                " defer_build=False or var_list=None."
            )
        if write_version not in (1, 2):
            raise RuntimeError(f"Unexpected write_version: {write_version}")
        if max_to_keep is not None and max_to_keep < 0:
            raise ValueError(f"max_to_keep must not be negative, got {max_to_keep}; None keeps all")
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._builder = builder
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._is_built = False
        self._is_empty = False
        self._allow_empty = allow_empty
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._last_checkpoints: list[tuple[str, float]] = []
        self._to_be_deleted: list[tuple[str, float]] = []
        self._next_checkpoint_time = 0.0
        self._by_objects: Saver | None = None
        if not defer_build:
            self.build()
        if self.saver_def is not None:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    # ------------------------------------------------------------ building
    def build(self) -> None:
        """Makes the ops, if `defer_build` put it off.

        Raises:
            ValueError: there are no variables and `allow_empty` is not set.
            RuntimeError: operations run as they are made, and nobody says which variables to save.
        """
        if executing_eagerly() and not self._var_list and not self._allow_empty:
            raise RuntimeError(
                "When eager execution is enabled, `var_list` must specify a list or dict of "
                "variables to save"
            )
        if not self._is_built:
            with held_session(self):
                self._build()

    def _build(self) -> None:
        if self.saver_def is None:
            var_list = all_saveable_objects() if self._var_list is None else self._var_list
            if not var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_built = self._is_empty = True
                return
            builder = self._builder or BulkSaverBuilder(self._write_version)
            self.saver_def = builder.build(
                var_list, reshape=self._reshape, sharded=self._sharded,
                max_to_keep=self._max_to_keep, keep_checkpoint_every_n_hours=self._keep_hours,
                name=self._name, restore_sequentially=self._restore_sequentially,
                filename=self._filename,
            )  # fmt: skip
        elif self._name:
            # With a SaverDef from a file, the name is the scope into which its graph was imported.
            from opdock.train.meta_graph import prepend_name_scope

            scoped = protos.SaverDef()
            scoped.CopyFrom(self.saver_def)
            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(scoped, field, prepend_name_scope(getattr(scoped, field), self._name))
            self.saver_def = scoped
        self._is_built = True
        self._check_saver_def()
        self._next_checkpoint_time = (
            time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600
        )

    def _check_saver_def(self) -> None:
        if not isinstance(self.saver_def, protos.SaverDef):
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {self.saver_def}")
        if not self.saver_def.save_tensor_name:
            raise ValueError(f"saver_def must specify the save_tensor_name: {self.saver_def}")
        if not self.saver_def.restore_op_name:
            raise ValueError(f"saver_def must specify the restore_op_name: {self.saver_def}")

    # ------------------------------------------------------------ saving
    @in_held_session
    def save(
        self, sess: Any, save_path: Any, global_step: Any = None,
        latest_filename: str | None = None, meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True, write_state: bool = True,
        strip_default_attrs: bool = False, save_debug_info: bool = False,
    ) -> str | None:  # fmt: skip
        """Writes a checkpoint, and deletes the oldest when there are too many.

        Args:
            sess: the session that holds the variables; nobody asks where operations run at once.
            save_path: prefix of the files.
            global_step: a number, tensor or tensor name to append to the prefix.
            latest_filename: name of the state file, "checkpoint" by default.
            meta_graph_suffix: ending of the MetaGraphDef file.
            write_meta_graph: write the graph too.
            write_state: write the state file.
            strip_default_attrs: leave default attributes out of the MetaGraphDef.
            save_debug_info: accepted for TF's signature.

        Returns:
            The prefix of the checkpoint, for `restore`; None from an empty saver.

        Raises:
            TypeError: `sess` is no session.
            ValueError: the directory does not exist, or the state file would be overwritten.
            RuntimeError: `build` was put off and not called.
        """
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        if self._write_version != protos.SaverDef.V2:
            _log.warning(
                "TensorFlow's V1 checkpoint format has been deprecated. Consider switching to the"
                " more efficient V2 format: `tf.train.Saver(write_version=tf.train.SaverDef.V2)`,"
                " now on by default."
            )
        latest_filename = latest_filename or "checkpoint"
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        path = as_path(save_path)
        if global_step is not None:
            prefix = f"{path}-{self._step_text(sess, global_step)}"
        else:
            prefix = path
            if os.path.basename(path) == latest_filename and not self._sharded:
                raise ValueError(
                    f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{path}'"
                )
        _check_session(sess)
        parent = filesystems.parent(path)
        written: str | None = None
        if not self._is_empty:
            try:
                written = self._write(sess, prefix)
            except (errors.NotFoundError, errors.FailedPreconditionError) as e:
                if not parent or filesystems.isdir(parent):
                    raise
                raise ValueError(f"Parent directory of {path} doesn't exist, can't save.") from e
            if write_state:
                self._record(written)
                checkpoint_management.update_checkpoint_state_internal(
                    parent, written, self.last_checkpoints, latest_filename,
                    self._save_relative_paths,
                )  # fmt: skip
                self._delete_old(meta_graph_suffix)
        if write_meta_graph and not isinstance(sess, HeldSession):
            name = checkpoint_management.meta_graph_filename(prefix, meta_graph_suffix)
            with sess.graph.as_default():
                self.export_meta_graph(name, strip_default_attrs=strip_default_attrs)
        return written

    def _write(self, sess: Any, prefix: str) -> str:
        saver_def = self.saver_def
        out = sess.run(saver_def.save_tensor_name, {saver_def.filename_tensor_name: prefix})
        return out.decode() if isinstance(out, bytes) else str(out)

    def _step_text(self, sess: Any, step: Any) -> str:
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            element = sess.graph.as_graph_element(step)
            step = sess.run(element)
        number = int(step)
        return f"{number:08d}" if self._pad_step_number else str(number)

    # ------------------------------------------------------------ restoring
    @in_held_session
    def restore(self, sess: Any, save_path: Any) -> None:
        """Gives the variables the values of a checkpoint; they need no initialization.

        Args:
            sess: the session.
            save_path: a prefix that `save` or `latest_checkpoint` returned.

        Raises:
            ValueError: there is no such checkpoint.
            tf.errors.NotFoundError: a variable is not in it.
            tf.errors.InvalidArgumentError: a shape or type differs.
            tf.errors.DataLossError: it is damaged.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        prefix = as_path(save_path)
        if not checkpoint_management.checkpoint_exists(prefix):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {prefix}")
        _log.info("Restoring parameters from %s", prefix)
        saver_def = self.saver_def
        try:
            sess.run(saver_def.restore_op_name, {saver_def.filename_tensor_name: prefix})
        except errors.NotFoundError as e:
            keys = checkpoint_management.object_graph_keys(prefix)
            if keys is None:
                what = "a Variable name or other graph key that is missing"
                raise _explained(e, what) from e
            self._restore_by_objects(sess, prefix, keys)
        except errors.InvalidArgumentError as e:
            raise _explained(e, "a mismatch between the current graph and the graph") from e

    def _restore_by_objects(self, sess: Any, prefix: str, keys: dict[str, str]) -> None:
        """Restores from a checkpoint of `tf.train.Checkpoint`, which tells variables' names too."""
        if self._by_objects is None:
            self._by_objects = saver_of_keys(sess.graph, self._var_list, keys)
        self._by_objects.restore(sess, prefix)

    # ------------------------------------------------------------ which to keep
    @property
    def last_checkpoints(self) -> list[str]:
        """Prefixes of the checkpoints that were not deleted, oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Deprecated: like `set_last_checkpoints_with_time`, with no times."""
        assert isinstance(last_checkpoints, list)
        self._last_checkpoints = [(path, float("inf")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: list[tuple[str, float]]
    ) -> None:
        """Sets the checkpoints that exist, oldest first, with the times they were written."""
        assert isinstance(last_checkpoints_with_time, list)
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """After a crash: counts those of these checkpoints that still exist as this saver's."""
        found = []
        for path in checkpoint_paths:
            times = checkpoint_management.get_checkpoint_mtimes([path])
            if times:
                found.append((path, times[0]))
        self.set_last_checkpoints_with_time(found)

    def _record(self, path: str) -> None:
        if not self.saver_def.max_to_keep:
            return
        self._last_checkpoints = [p for p in self._last_checkpoints if p[0] != path]
        self._last_checkpoints.append((path, time.time()))
        if len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._to_be_deleted.append(self._last_checkpoints.pop(0))

    def _delete_old(self, meta_graph_suffix: str) -> None:
        if not self._to_be_deleted:
            return
        path, written = self._to_be_deleted.pop(0)
        if written > self._next_checkpoint_time:
            self._next_checkpoint_time += self.saver_def.keep_checkpoint_every_n_hours * 3600
            return
        try:
            checkpoint_management.remove_checkpoint(path, self.saver_def.version, meta_graph_suffix)
        except errors.OpError as e:
            _log.warning("Ignoring: %s", e)

    # ------------------------------------------------------------ protobufs
    def as_saver_def(self) -> Any:
        """The `SaverDef`."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The `SaverDef` with names relative to a scope; None when the saver is outside it."""
        from opdock.train.meta_graph import strip_name_scope

        if export_scope is None:
            return self.saver_def
        out = protos.SaverDef()
        out.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            if not getattr(out, field).startswith(export_scope):
                return None
            setattr(out, field, strip_name_scope(getattr(out, field), export_scope))
        return out

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """The saver of a `SaverDef` whose ops are in the graph already."""
        return Saver(saver_def=saver_def, name=import_scope)

    def _add_collection_def(
        self, meta_graph_def: Any, key: Any, export_scope: str | None = None
    ) -> None:
        from opdock.train.collection_defs import add_collection_def

        add_collection_def(meta_graph_def, key, export_scope=export_scope)

    def export_meta_graph(
        self, filename: Any = None, collection_list: list[str] | None = None,
        as_text: bool = False, export_scope: str | None = None, clear_devices: bool = False,
        clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:  # fmt: skip
        """Writes the default graph with this saver as a MetaGraphDef.

        The arguments are those of `tf.train.export_meta_graph`.
        """
        return export_meta_graph(
            filename, saver_def=self.saver_def, collection_list=collection_list, as_text=as_text,
            export_scope=export_scope, clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )  # fmt: skip


def saver_of_keys(graph: Graph, var_list: Any, keys: dict[str, str]) -> Saver:
    """A saver for variables under the keys that they have in an object-based checkpoint.

    Raises:
        NotFoundError: a variable is not in it.
    """
    with graph.as_default():
        found = all_saveable_objects() if var_list is None else var_list
        by_name = found if isinstance(found, dict) else names_of(found)
        missing = sorted(set(by_name) - keys.keys())
        if missing:
            raise errors.NotFoundError(
                None,
                None,
                "Existing variables not in the checkpoint. Could not find some variables in the"
                f" object-based checkpoint: {', '.join(missing)}",
            )
        return Saver(
            {keys[name]: variable for name, variable in by_name.items()}, name="by_objects"
        )


def _check_session(sess: Any) -> None:
    if not (hasattr(sess, "run") and hasattr(sess, "graph")):
        raise TypeError(f"'sess' must be a Session; {sess}")


def _explained(error: errors.OpError, cause: str) -> errors.OpError:
    message = (
        f"Restoring from checkpoint failed. This is most likely due to {cause} from the checkpoint."
        " Please ensure that you have not altered the graph expected based on the checkpoint."
        f" Original error:\n\n{error.message}"
    )
    return type(error)(error.node_def, error.op, message)


def export_meta_graph(
    filename: Any = None, meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
    collection_list: list[str] | None = None, as_text: bool = False, graph: Graph | None = None,
    export_scope: str | None = None, clear_devices: bool = False,
    clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
    save_debug_info: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Builds a `MetaGraphDef` of a graph and writes it to a file.

    Args:
        filename: the file, or None to write none.
        meta_info_def: a `MetaInfoDef` to start from.
        graph_def: the graph; that of `graph` when None.
        saver_def: the saver to record.
        collection_list: names of collections to write, all when None.
        as_text: write text instead of binary.
        graph: the graph, the default graph when None.
        export_scope: export only this name scope, with its name taken off.
        clear_devices: take off the device of every node.
        clear_extraneous_savers: leave out other savers' nodes.
        strip_default_attrs: leave out attributes that have their default values.
        save_debug_info: accepted for TF's signature.
        **kwargs: further arguments of `export_scoped_meta_graph`.

    Returns:
        The `MetaGraphDef`.
    """
    from opdock.train.meta_graph import export_scoped_meta_graph

    return export_scoped_meta_graph(
        filename=filename, meta_info_def=meta_info_def, graph_def=graph_def, saver_def=saver_def,
        collection_list=collection_list, as_text=as_text, graph=graph, export_scope=export_scope,
        clear_devices=clear_devices, clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs, **kwargs,
    )[0]  # fmt: skip


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None,
    **kwargs: Any,
) -> Saver | None:  # fmt: skip
    """Recreates a graph and its collections from a MetaGraphDef.

    Args:
        meta_graph_or_file: a `MetaGraphDef` or a file name, binary or text.
        clear_devices: take off the device of every node.
        import_scope: prefix of the new names.
        **kwargs: `input_map` and other arguments of `import_scoped_meta_graph`.

    Returns:
        A `Saver` for the variables of the graph, None when there are none.

    Raises:
        IOError: the file does not exist or cannot be parsed.
        ValueError: the graph is malformed.
    """
    return import_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, import_scope, **kwargs
    )[0]


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None,
    return_elements: list[str] | None = None, **kwargs: Any,
) -> tuple[Saver | None, list[Any] | None]:  # fmt: skip
    """`import_meta_graph`, which also returns the elements of the graph that are asked for."""
    from opdock.train.meta_graph import (
        import_scoped_meta_graph_with_return_elements,
        read_meta_graph_file,
    )

    meta = meta_graph_or_file
    if not isinstance(meta, protos.MetaGraphDef):
        meta = read_meta_graph_file(meta)
    variables, elements = import_scoped_meta_graph_with_return_elements(
        meta, clear_devices=clear_devices, import_scope=import_scope,
        return_elements=return_elements, **kwargs,
    )  # fmt: skip
    return _imported_saver(meta, import_scope, variables), elements


def _imported_saver(meta: Any, scope: str | None, variables: dict[str, Any]) -> Saver | None:
    if not meta.HasField("saver_def"):
        if all_saveable_objects(scope=scope):
            return Saver()
        _log.info("Saver not created because there are no variables in the graph to restore")
        return None
    for key, variable in variables.items():
        # The scope that the import really took may have a number.
        scope = variable.name[: -len(key)]
        break
    return Saver(saver_def=meta.saver_def, name=scope)
