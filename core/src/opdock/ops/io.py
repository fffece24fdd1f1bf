"""Ops on files: checkpoints, whole files and file names."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.io.tensor_slice import parse_shape_and_slice
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import all_scalar
from opdock.shapes import Shape

__all__ = ["matching_files", "read_file", "write_file"]


# ---------------------------------------------------------------- checkpoints
save_v2_op = define_op(
    "SaveV2",
    "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
    "dtypes: list(type) >= 1",
    stateful=True,
).not_differentiable()
restore_v2_op = define_op(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
    "dtypes: list(type) >= 1",
    stateful=True,
).not_differentiable()
merge_v2_checkpoints_op = define_op(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string",
    "delete_old_dirs: bool = true",
    stateful=True,
).not_differentiable()
# The same a tensor at a time, for the compiler: see the traits `pieces` and `gathers`.
open_checkpoint_op = define_op(
    "_OpenCheckpoint",
    "prefix: string, tensor_names: string, shape_and_slices: string -> checkpoint: variant",
    "dtypes: list(type) >= 1",
    stateful=True,
).not_differentiable()
read_checkpoint_op = define_op(
    "_ReadCheckpoint", "checkpoint: variant -> tensor: dtype", "dtype: type, index: int >= 0"
).not_differentiable()
create_checkpoint_op = define_op(
    "_CreateCheckpoint",
    "prefix: string, tensor_names: string, shape_and_slices: string -> checkpoint: variant",
    "dtypes: list(type) >= 1",
    stateful=True,
).not_differentiable()
write_checkpoint_op = define_op(
    "_WriteCheckpoint",
    "checkpoint: variant, tensor: dtype -> same_checkpoint: variant",
    "dtype: type, index: int >= 0",
    stateful=True,
).not_differentiable()
finish_checkpoint_op = define_op(
    "_FinishCheckpoint", "checkpoint: variant", stateful=True
).not_differentiable()
for _op in (
    merge_v2_checkpoints_op, open_checkpoint_op, write_checkpoint_op, finish_checkpoint_op,
):  # fmt: skip
    _op.declare(Traits(cost=Cost.WAIT))
save_v2_op.declare(
    Traits(cost=Cost.WAIT, gathers=("_CreateCheckpoint", "_WriteCheckpoint", "_FinishCheckpoint"))
)
restore_v2_op.declare(Traits(cost=Cost.WAIT, pieces=("_OpenCheckpoint", "_ReadCheckpoint")))
read_checkpoint_op.declare(Traits(cost=Cost.WAIT, reads=("checkpoint",)))
sharded_filename_op = define_op(
    "ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string"
).not_differentiable()
sharded_filespec_op = define_op(
    "ShardedFilespec", "basename: string, num_shards: int32 -> filename: string"
).not_differentiable()


def _check_names(sig: ShapeSig) -> None:
    shapes.with_rank(sig.shapes[0], 0)
    count = len(sig.attrs["dtypes"])
    for i in (1, 2):
        (length,) = shapes.with_rank(sig.shapes[i], 1)
        shapes.merge_dim(length, count)


@save_v2_op.shape
def _save_v2_shape(sig: ShapeSig) -> list[Shape]:
    _check_names(sig)
    return []


@restore_v2_op.shape
def _restore_v2_shape(sig: ShapeSig) -> list[Shape]:
    _check_names(sig)
    specs = sig.const(2)
    if specs is None:
        return [None] * sig.n_outputs
    out: list[Shape] = []
    for spec in specs.reshape(-1):
        text = spec.decode() if isinstance(spec, bytes) else str(spec)
        if not text:
            out.append(None)
            continue
        shape, part = parse_shape_and_slice(text)
        out.append(part.shape_in(shape))
    return out


@open_checkpoint_op.shape
@create_checkpoint_op.shape
def _open_checkpoint_shape(sig: ShapeSig) -> list[Shape]:
    _check_names(sig)
    return [()]


@write_checkpoint_op.shape
def _write_checkpoint_shape(sig: ShapeSig) -> list[Shape]:
    return [shapes.with_rank(sig.shapes[0], 0)]


@finish_checkpoint_op.shape
def _finish_checkpoint_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return []


@read_checkpoint_op.shape
def _read_checkpoint_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return [None]


@merge_v2_checkpoints_op.shape
def _merge_v2_checkpoints_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[1], 0)
    return []


for _op in (sharded_filename_op, sharded_filespec_op):
    _op.shape(all_scalar)


# The first format.
save_op = define_op(
    "Save",
    "filename: string, tensor_names: string, data: T",
    "T: list(type) >= 1",
    stateful=True,
).not_differentiable()
save_slices_op = define_op(
    "SaveSlices",
    "filename: string, tensor_names: string, shapes_and_slices: string, data: T",
    "T: list(type) >= 1",
    stateful=True,
).not_differentiable()
restore_op = define_op(
    "Restore",
    "file_pattern: string, tensor_name: string -> tensor: dt",
    "dt: type, preferred_shard: int = -1",
    stateful=True,
).not_differentiable()
restore_slice_op = define_op(
    "RestoreSlice",
    "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt",
    "dt: type, preferred_shard: int = -1",
    stateful=True,
).not_differentiable()
for _op in (save_op, save_slices_op, restore_op, restore_slice_op):
    _op.declare(Traits(cost=Cost.WAIT))


@save_op.shape
@save_slices_op.shape
def _save_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    for shape in sig.shapes[1 : 3 if sig.op == "SaveSlices" else 2]:
        (length,) = shapes.with_rank(shape, 1)
        shapes.merge_dim(length, len(sig.attrs["T"]))
    return []


@restore_op.shape
@restore_slice_op.shape
def _restore_shape(sig: ShapeSig) -> Shape:
    for shape in sig.shapes:
        shapes.with_rank(shape, 0)
    spec = sig.const(2) if sig.op == "RestoreSlice" else None
    text = b"" if spec is None else spec.reshape(-1)[0]
    if not text:
        return None
    whole, part = parse_shape_and_slice(text.decode() if isinstance(text, bytes) else str(text))
    return part.shape_in(whole)


# ---------------------------------------------------------------- files
read_file_op = define_op(
    "ReadFile", "filename: string -> contents: string"
).not_differentiable()  # fmt: skip
write_file_op = define_op(
    "WriteFile", "filename: string, contents: string", stateful=True
).not_differentiable()
matching_files_op = define_op(
    "MatchingFiles", "pattern: string -> filenames: string"
).not_differentiable()  # fmt: skip
write_file_op.declare(Traits(cost=Cost.WAIT))
for _op in (read_file_op, matching_files_op):
    # TF does not call them stateful, but what files there are is not known before the step.
    _op.declare(Traits(fold=False, merge=False, cost=Cost.WAIT))
read_file_op.shape(all_scalar)
write_file_op.shape(all_scalar)


@matching_files_op.shape
def _matching_files_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank_at_most(sig.shapes[0], 1)
    return (None,)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The content of a file.

    Args:
        filename: a scalar string tensor.
        name: a name for the operation.

    Returns:
        A scalar string tensor.

    Raises:
        tf.errors.NotFoundError: at run time, when there is no such file.
    """
    return read_file_op(filename, name=name)  # type: ignore[no-any-return]


@extensible
def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Writes a file, replacing what was there; missing directories are made.

    Args:
        filename: a scalar string tensor.
        contents: a scalar string tensor.
        name: a name for the operation.

    Returns:
        The operation.
    """
    return write_file_op(filename, contents, name=name)  # type: ignore[no-any-return]


@extensible
def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match glob patterns.

    Args:
        pattern: a string tensor, scalar or vector.
        name: a name for the operation.

    Returns:
        A 1-D string tensor, sorted.
    """
    return matching_files_op(pattern, name=name)  # type: ignore[no-any-return]
