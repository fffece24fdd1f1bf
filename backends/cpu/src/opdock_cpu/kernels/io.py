"""File and checkpoint kernels: the work is core's (`host_ops`), as it is the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, host_ops

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


def _scalar(value: bytes) -> Array:
    out = np.empty((), object)
    out[()] = value
    return out


def _plain(value: Any) -> Any:
    # A variable saved by reference arrives as its cell.
    return value.read() if hasattr(value, "read") and hasattr(value, "write") else value


@table.binder("SaveV2")
def save_v2(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Writes the tensors as a checkpoint bundle."""
    dtypes = list(sig.attrs["dtypes"])

    def run(prefix: Array, names: Array, specs: Array, *tensors: Any) -> tuple[()]:
        host_ops.save_v2(prefix, names, specs, [_plain(t) for t in tensors], dtypes)
        return ()

    return run


@table.binder("_CreateCheckpoint")
def create_checkpoint(sig: NodeSig) -> Callable[..., Any]:
    """Begins a checkpoint, to which tensors are added one by one."""
    dtypes = list(sig.attrs["dtypes"])
    return lambda prefix, names, specs: host_ops.begin_saving(prefix, names, specs, dtypes)


@table.binder("_WriteCheckpoint", keeps="checkpoint", may_alias={0: 0})
def write_checkpoint(sig: NodeSig) -> Callable[[Any, Any], Any]:
    """Adds one of them."""
    index = int(sig.attrs["index"])

    def run(saving: Any, tensor: Any) -> Any:
        saving.write(index, _plain(tensor))
        return saving

    return run


@table.kernel("_FinishCheckpoint")
def finish_checkpoint(ctx: Any, saving: Any) -> tuple[()]:
    """Puts the checkpoint into its place."""
    saving.finish()
    return ()


@table.binder("RestoreV2")
def restore_v2(sig: NodeSig) -> Callable[..., Any]:
    """Reads tensors from a checkpoint."""
    dtypes = list(sig.attrs["dtypes"])

    def run(prefix: Array, names: Array, specs: Array) -> Any:
        out = host_ops.restore_v2(prefix, names, specs, dtypes)
        return out[0] if len(out) == 1 else out

    return run


@table.binder("_OpenCheckpoint")
def open_checkpoint(sig: NodeSig) -> Callable[..., Any]:
    """Finds tensors in a checkpoint, to be read one by one."""
    dtypes = list(sig.attrs["dtypes"])
    return lambda prefix, names, specs: host_ops.open_restoration(prefix, names, specs, dtypes)


@table.binder("_ReadCheckpoint")
def read_checkpoint(sig: NodeSig) -> Callable[[Any], Array]:
    """Reads one of them."""
    index = int(sig.attrs["index"])
    return lambda found: found.read(index)


@table.binder("Save")
def save(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Writes whole tensors as a checkpoint of the first format."""
    dtypes = list(sig.attrs["T"])

    def run(filename: Array, names: Array, *tensors: Any) -> tuple[()]:
        host_ops.save_v1(filename, names, None, [_plain(t) for t in tensors], dtypes)
        return ()

    return run


@table.binder("SaveSlices")
def save_slices(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Writes the tensors as a checkpoint of the first format."""
    dtypes = list(sig.attrs["T"])

    def run(filename: Array, names: Array, specs: Array, *tensors: Any) -> tuple[()]:
        host_ops.save_v1(filename, names, specs, [_plain(t) for t in tensors], dtypes)
        return ()

    return run


@table.binder("Restore")
def restore(sig: NodeSig) -> Callable[..., Array]:
    """Reads one tensor from a checkpoint."""
    dtypes = [sig.attrs["dt"]]
    return lambda pattern, name: host_ops.restore_v2(pattern, name, [b""], dtypes)[0]


@table.binder("RestoreSlice")
def restore_slice(sig: NodeSig) -> Callable[..., Array]:
    """Reads a slice of one tensor from a checkpoint."""
    dtypes = [sig.attrs["dt"]]
    return lambda pattern, name, spec: host_ops.restore_v2(pattern, name, spec, dtypes)[0]


@table.binder("MergeV2Checkpoints")
def merge_v2_checkpoints(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Joins the bundles of a sharded save."""
    delete = bool(sig.attrs["delete_old_dirs"])

    def run(prefixes: Array, destination: Array) -> tuple[()]:
        host_ops.merge_checkpoints(prefixes, destination, delete)
        return ()

    return run


@table.kernel("ShardedFilename")
def sharded_filename(ctx: Any, basename: Array, shard: Any, num_shards: Any) -> Array:
    """The name of one shard."""
    return _scalar(host_ops.sharded_filename(basename, shard, num_shards))


@table.kernel("ShardedFilespec")
def sharded_filespec(ctx: Any, basename: Array, num_shards: Any) -> Array:
    """The pattern of all shards."""
    return _scalar(host_ops.sharded_filespec(basename, num_shards))


@table.kernel("ReadFile")
def read_file(ctx: Any, filename: Array) -> Array:
    """The bytes of a file."""
    return _scalar(host_ops.read_file(filename))


@table.kernel("WriteFile")
def write_file(ctx: Any, filename: Array, contents: Array) -> tuple[()]:
    """Writes bytes to a file."""
    host_ops.write_file(filename, contents)
    return ()


@table.kernel("MatchingFiles")
def matching_files(ctx: Any, pattern: Array) -> Array:
    """The files that match the patterns."""
    return host_ops.matching_files(pattern)
