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
from opdock.train.saveable import SaveableObject, group_by_device, op_of, saveables_for, set_cpu0

__all__ = ["build_saver_def"]

# Values of SaverDef.CheckpointFormatVersion.
_V1, _V2 = 1, 2


def build_saver_def(
    var_list: Any, *, reshape: bool, sharded: bool, max_to_keep: int | None, keep_hours: float,
    name: str | None, restore_sequentially: bool, filename: str | None, version: int,
) -> Any:  # fmt: skip
    """Adds the ops that save and restore, and names them in a `SaverDef`."""
    saveables = saveables_for(var_list)
    with name_scope(name, "save", [o for s in saveables if (o := op_of(s)) is not None]):
        prefix = placeholder_with_default(filename or "model", shape=(), name="filename")
        # A second placeholder keeps the name by which old SaverDefs know it.
        prefix = placeholder_with_default(prefix, shape=(), name="Const")
        if sharded:
            per_device = group_by_device(saveables)
            make = _sharded_save if version == _V2 else _sharded_save_v1
            saved = make(prefix, per_device)
            restored = _sharded_restore(prefix, per_device, reshape, restore_sequentially)
        else:
            saved = _save(prefix, saveables, version)
            restored = _restore(prefix, saveables, reshape, restore_sequentially, "restore_all")
    return protos.SaverDef(
        filename_tensor_name=prefix.name, save_tensor_name=saved.name,
        restore_op_name=restored.name, max_to_keep=max_to_keep or 0, sharded=sharded,
        keep_checkpoint_every_n_hours=keep_hours, version=version,
    )  # fmt: skip


# ---------------------------------------------------------------- save
def _save(prefix: Tensor, saveables: list[SaveableObject], version: int) -> Tensor:
    specs = [spec for s in saveables for spec in s.specs]
    tensors = [spec.tensor for spec in specs]
    names, slices = [s.name for s in specs], [s.slice_spec for s in specs]
    if version == _V2:
        op = save_v2_op(prefix, names, slices, tensors)
    else:
        op = save_slices_op(prefix, names, slices, tensors, name="save")
    with (
        name_scope(None, "control_dependency", [op, prefix]) as scope,
        colocate_with(prefix),
        control_dependencies([op]),
    ):
        return identity(prefix, name=scope)


def _sharded_save(prefix: Tensor, per_device: list[tuple[str, list[SaveableObject]]]) -> Tensor:
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
            saves.append(_save(name, saveables, _V2))
    with control_dependencies([s.op for s in saves]), device(set_cpu0(last)):
        merge = merge_v2_checkpoints_op(names, prefix, delete_old_dirs=True)
        with control_dependencies([merge]):
            return identity(prefix)


def _sharded_save_v1(prefix: Tensor, per_device: list[tuple[str, list[SaveableObject]]]) -> Tensor:
    count = constant(len(per_device), name="num_shards")
    saves = []
    for shard, (where, saveables) in enumerate(per_device):
        with device(where):
            saves.append(_save(sharded_filename_op(prefix, shard, count), saveables, _V1))
    with control_dependencies([s.op for s in saves]):
        return sharded_filespec_op(prefix, count)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- restore
def _restore(
    prefix: Tensor, saveables: list[SaveableObject], reshape: bool, sequentially: bool, name: str
) -> Operation:
    specs = [spec for s in saveables for spec in s.specs]
    with device("cpu:0"):
        values = restore_v2_op(
            prefix, [s.name for s in specs], [s.slice_spec for s in specs],
            dtypes=[s.dtype for s in specs],
        )  # fmt: skip
    assigns: list[Any] = []
    at = 0
    for saveable in saveables:
        part = values[at : at + len(saveable.specs)]
        at += len(saveable.specs)
        shapes = [_target_shape(s.tensor) for s in saveable.specs] if reshape else None
        with control_dependencies(assigns[-1:] if sequentially else []):
            assigns.append(saveable.restore(part, shapes))
    return group(*assigns, name=name)


def _target_shape(tensor: Any) -> Any:
    static = tensor.get_shape()
    return static if static.is_fully_defined() else shape(tensor)


def _sharded_restore(
    prefix: Tensor, per_device: list[tuple[str, list[SaveableObject]]], reshape: bool,
    sequentially: bool,
) -> Operation:  # fmt: skip
    shards = []
    for where, saveables in per_device:
        with device(where):
            shards.append(_restore(prefix, saveables, reshape, sequentially, "restore_shard"))
    return group(*shards, name="restore_all")
