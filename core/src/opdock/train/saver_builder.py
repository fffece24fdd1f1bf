"""The ops of a Saver, under TF's node names."""

from __future__ import annotations

import uuid
from typing import Any

from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, control_dependencies, device, name_scope
from opdock.io import protos
from opdock.ops.array import shape
from opdock.ops.control import group
from opdock.ops.identity import identity, placeholder_with_default
from opdock.ops.io import (
    merge_v2_checkpoints_op,
    restore_v2_op,
    save_slices_op,
    save_v2_op,
    sharded_filename_op,
    sharded_filespec_op,
)
from opdock.ops.strings import string_join
from opdock.train.saveable import (
    ReferenceVariableSaveable,
    ResourceVariableSaveable,
    SaveableObject,
    SaveSpec,
    group_by_device,
    names_of,
    op_of,
    saveables_for,
    set_cpu0,
)

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder"]

# Values of SaverDef.CheckpointFormatVersion.
_V1, _V2 = 1, 2

# Names of their own: in the builder, `SaveableObject` is the attribute that TF has.
Saveables = list[SaveableObject]
PerDevice = list[tuple[str, Saveables]]


class BaseSaverBuilder:
    """Makes the ops of a Saver; a subclass can write and read in a way of its own.

    Args:
        write_version: `SaverDef.V2`, or `SaverDef.V1` for the deprecated first format.
    """

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject
    VariableSaveable = ReferenceVariableSaveable
    ResourceVariableSaveable = ResourceVariableSaveable
    OpListToDict = staticmethod(names_of)

    def __init__(self, write_version: int = _V2) -> None:
        self._write_version = write_version

    def build(
        self, names_to_saveables: Any, reshape: bool = False, sharded: bool = False,
        max_to_keep: int | None = 5, keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None, restore_sequentially: bool = False,
        filename: str | None = "model",
    ) -> Any:  # fmt: skip
        """Adds the ops that save and restore; the arguments are those of `tf.train.Saver`.

        Returns:
            A `SaverDef` that names them.
        """
        saveables = saveables_for(names_to_saveables)
        with name_scope(name, "save", [o for s in saveables if (o := op_of(s)) is not None]):
            prefix = placeholder_with_default(filename or "model", shape=(), name="filename")
            # A second placeholder keeps the name by which old SaverDefs know it.
            prefix = placeholder_with_default(prefix, shape=(), name="Const")
            if sharded:
                per_device = group_by_device(saveables)
                v2 = self._write_version == _V2
                saved = (self._save_shards if v2 else self._save_shards_v1)(prefix, per_device)
                restored = self._restore_shards(prefix, per_device, reshape, restore_sequentially)
            else:
                saved = self._save(prefix, saveables)
                restored = self._restore(
                    prefix, saveables, reshape, restore_sequentially, "restore_all"
                )
        return protos.SaverDef(
            filename_tensor_name=prefix.name, save_tensor_name=saved.name,
            restore_op_name=restored.name, max_to_keep=max_to_keep or 0, sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )  # fmt: skip

    # ------------------------------------------------------------ save
    def save_op(self, filename_tensor: Tensor, saveables: Saveables) -> Operation:
        """Makes the op that writes a file.

        Args:
            filename_tensor: the file's name, of V2 checkpoints the prefix.
            saveables: what to write.
        """
        specs = [spec for s in saveables for spec in s.specs]
        tensors = [spec.tensor for spec in specs]
        names, slices = [s.name for s in specs], [s.slice_spec for s in specs]
        if self._write_version == _V2:
            return save_v2_op(filename_tensor, names, slices, tensors)  # type: ignore[no-any-return]
        made: Operation = save_slices_op(filename_tensor, names, slices, tensors, name="save")
        return made

    def _save(self, prefix: Tensor, saveables: Saveables) -> Tensor:
        op = self.save_op(prefix, saveables)
        with (
            name_scope(None, "control_dependency", [op, prefix]) as scope,
            colocate_with(prefix),
            control_dependencies([op]),
        ):
            return identity(prefix, name=scope)

    def _save_shards(self, prefix: Tensor, per_device: PerDevice) -> Tensor:
        # Every shard is a bundle in a directory of its own; merging renames their files into place.
        with device("CPU"):
            temporary = string_join([prefix, f"_temp_{uuid.uuid4().hex}/part"])
        count = constant(len(per_device), name="num_shards")
        names, saves = [], []
        last = ""
        for shard, (where, saveables) in enumerate(per_device):
            last = where
            with device(set_cpu0(where)):
                name = sharded_filename_op(temporary, shard, count)
                names.append(name)
                saves.append(self._save(name, saveables))
        with control_dependencies([s.op for s in saves]), device(set_cpu0(last)):
            merge = merge_v2_checkpoints_op(names, prefix, delete_old_dirs=True)
            with control_dependencies([merge]):
                return identity(prefix)

    def _save_shards_v1(self, prefix: Tensor, per_device: PerDevice) -> Tensor:
        count = constant(len(per_device), name="num_shards")
        saves = []
        for shard, (where, saveables) in enumerate(per_device):
            with device(where):
                saves.append(self._save(sharded_filename_op(prefix, shard, count), saveables))
        with control_dependencies([s.op for s in saves]):
            pattern: Tensor = sharded_filespec_op(prefix, count)
            return pattern

    # ------------------------------------------------------------ restore
    def bulk_restore(
        self, filename_tensor: Tensor, saveables: Saveables, preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:  # fmt: skip
        """Makes the op that reads the values of all saveables.

        Args:
            filename_tensor: the file's name, of V2 checkpoints the prefix.
            saveables: what to read.
            preferred_shard: in which shard of a V1 checkpoint to look first; not needed.
            restore_sequentially: whether values are assigned one after the other.

        Returns:
            A tensor for each spec of each saveable.
        """
        specs = [spec for s in saveables for spec in s.specs]
        with device("cpu:0"):
            values: list[Tensor] = restore_v2_op(
                filename_tensor, [s.name for s in specs], [s.slice_spec for s in specs],
                dtypes=[s.dtype for s in specs],
            )  # fmt: skip
        return values

    def _restore(
        self, prefix: Tensor, saveables: Saveables, reshape: bool, sequentially: bool,
        name: str, shard: int = -1,
    ) -> Operation:  # fmt: skip
        values = self.bulk_restore(prefix, saveables, shard, sequentially)
        assigns: list[Any] = []
        at = 0
        for saveable in saveables:
            part = values[at : at + len(saveable.specs)]
            at += len(saveable.specs)
            shapes = [_target_shape(s.tensor) for s in saveable.specs] if reshape else None
            # An object may hold what a variable holds too, in another form: it has the last word.
            plain = isinstance(saveable, (ReferenceVariableSaveable, ResourceVariableSaveable))
            first = assigns[-1:] if sequentially else [] if plain else list(assigns)
            with control_dependencies(first):
                assigns.append(saveable.restore(part, shapes))
        return group(*assigns, name=name)

    def _restore_shards(
        self, prefix: Tensor, per_device: PerDevice, reshape: bool, sequentially: bool
    ) -> Operation:
        shards = []
        for shard, (where, saveables) in enumerate(per_device):
            with device(where):
                made = self._restore(
                    prefix, saveables, reshape, sequentially, "restore_shard", shard
                )
                shards.append(made)
        return group(*shards, name="restore_all")


class BulkSaverBuilder(BaseSaverBuilder):
    """TF's name for the builder that reads all values by one op, as this one does anyway."""


def _target_shape(tensor: Any) -> Any:
    static = tensor.get_shape()
    return static if static.is_fully_defined() else shape(tensor)
