"""The `checkpoint` file of a directory, which names the checkpoints in it, and their removal."""

from __future__ import annotations

import glob
import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from opdock import errors
from opdock.io import filesystems, protos
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.io.files import as_path, read_file, tf_errors, write_file
from opdock.io.parsing import parsed
from opdock.train.saveable import OBJECT_GRAPH_PROTO_KEY

__all__ = [
    "checkpoint_exists", "generate_checkpoint_state_proto", "get_checkpoint_mtimes",
    "get_checkpoint_state", "latest_checkpoint", "remove_checkpoint", "update_checkpoint_state",
]  # fmt: skip

_log = logging.getLogger("tensorflow")


def state_path(directory: str, latest_filename: str | None = None) -> str:
    """The file in which a directory's checkpoints are listed."""
    return os.path.join(directory, latest_filename or "checkpoint")


def generate_checkpoint_state_proto(
    save_dir: Any, model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:  # fmt: skip
    """Builds a `CheckpointState`.

    Args:
        save_dir: the directory of the state file; relative paths are made relative to it.
        model_checkpoint_path: the latest checkpoint.
        all_model_checkpoint_paths: all that were kept, oldest first.
        all_model_checkpoint_timestamps: when each was written, in seconds since 1970.
        last_preserved_timestamp: when a checkpoint was last kept for good.

    Returns:
        The `CheckpointState`.

    Raises:
        ValueError: there are more or fewer timestamps than paths.
    """
    directory = as_path(save_dir)
    # A list of the caller's gets the latest checkpoint too, as in TF.
    paths = [] if all_model_checkpoint_paths is None else all_model_checkpoint_paths
    paths = paths if isinstance(paths, list) else list(paths)
    if not paths or paths[-1] != model_checkpoint_path:
        if paths:
            _log.info(
                "%s is not in all_model_checkpoint_paths. Manually adding it.",
                model_checkpoint_path,
            )
        paths.append(model_checkpoint_path)
    stamps = list(all_model_checkpoint_timestamps or ())
    if stamps and len(stamps) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths (got"
            f" {len(paths)} paths and {len(stamps)} timestamps)"
        )
    absolute = filesystems.is_absolute
    if not absolute(directory):
        # A relative path is relative to the state file when it is read, so it must be so here.
        paths = [p if absolute(p) else os.path.relpath(p, directory or ".") for p in paths]
        if not absolute(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, directory or ".")
    state = protos.CheckpointState(
        model_checkpoint_path=model_checkpoint_path,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=stamps,
    )
    if last_preserved_timestamp is not None:
        state.last_preserved_timestamp = last_preserved_timestamp
    return state


def update_checkpoint_state(
    save_dir: Any, model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None, latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:  # fmt: skip
    """Writes the state file of a directory; the arguments are those of
    `generate_checkpoint_state_proto` and the file's name.

    Args:
        save_dir: the directory.
        model_checkpoint_path: the last checkpoint.
        all_model_checkpoint_paths: those that are kept, the oldest first.
        latest_filename: the file's name, "checkpoint" by default.
        all_model_checkpoint_timestamps: when they were saved.
        last_preserved_timestamp: when the last was that is kept for good.

    Raises:
        RuntimeError: the state file would overwrite the checkpoint.
    """
    update_checkpoint_state_internal(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths, latest_filename, False,
        all_model_checkpoint_timestamps, last_preserved_timestamp,
    )  # fmt: skip


def update_checkpoint_state_internal(
    save_dir: Any, model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None, latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:  # fmt: skip
    """`update_checkpoint_state`, with all paths made relative to the directory if asked."""
    from google.protobuf import text_format

    directory = as_path(save_dir)
    path = state_path(directory, latest_filename)
    if save_relative_paths:

        def shorten(p: str) -> str:
            return os.path.relpath(p, directory) if filesystems.is_absolute(p) else p

        state = generate_checkpoint_state_proto(
            directory, shorten(model_checkpoint_path),
            [shorten(p) for p in all_model_checkpoint_paths or ()],
            all_model_checkpoint_timestamps, last_preserved_timestamp,
        )  # fmt: skip
    else:
        state = generate_checkpoint_state_proto(
            directory, model_checkpoint_path, all_model_checkpoint_paths,
            all_model_checkpoint_timestamps, last_preserved_timestamp,
        )  # fmt: skip
    if path == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state. "
            " Please use a different save path."
        )
    write_file(path, text_format.MessageToString(state).encode())


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> Any:
    """Reads the state file of a directory.

    Args:
        checkpoint_dir: the directory.
        latest_filename: the file's name, "checkpoint" by default.

    Returns:
        A `CheckpointState` with paths that start at the directory, or None when there is no
        readable state file.

    Raises:
        ValueError: the file names no checkpoint.
    """
    from google.protobuf import text_format

    directory = as_path(checkpoint_dir)
    path = state_path(directory, latest_filename)
    if not filesystems.isfile(path):
        return None
    try:
        state = text_format.Parse(read_file(path), protos.CheckpointState())
    except (errors.OpError, text_format.ParseError, UnicodeDecodeError) as e:
        _log.warning("%s: %s", path, e)
        _log.warning("%s: Checkpoint ignored", path)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {directory}")
    state.model_checkpoint_path = _inside(directory, state.model_checkpoint_path)
    for i, p in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[i] = _inside(directory, p)
    return state


def _inside(directory: str, path: str) -> str:
    return path if filesystems.is_absolute(path) else os.path.join(directory, path)


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The prefix of the latest checkpoint of a directory.

    Args:
        checkpoint_dir: the directory.
        latest_filename: name of the state file, "checkpoint" by default.

    Returns:
        The prefix, for `Saver.restore`, or None when there is no checkpoint.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path: str = state.model_checkpoint_path
    if checkpoint_exists(path):
        return path
    _log.error("Couldn't match files for checkpoint %s", path)
    return None


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether a checkpoint of either format has this prefix.

    Args:
        checkpoint_prefix: its path without the endings of its files.
    """
    return bool(_files_of(as_path(checkpoint_prefix)))


def _files_of(prefix: str) -> list[str]:
    return filesystems.matching(f"{prefix}.index") or filesystems.matching(prefix)


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """When each checkpoint was last written, in seconds since 1970; missing ones are left out.

    Args:
        checkpoint_prefixes: their paths without the endings of their files.
    """
    times = []
    for given in checkpoint_prefixes:
        found = _files_of(as_path(given))
        if found:
            times.append(filesystems.of(found[0]).stat(found[0])[1] / 1e9)
    return times


def remove_checkpoint(
    checkpoint_prefix: Any, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes a checkpoint's files.

    Args:
        checkpoint_prefix: the prefix.
        checkpoint_format_version: `SaverDef.V2` or `SaverDef.V1`.
        meta_graph_suffix: ending of the MetaGraphDef file.
    """
    prefix = as_path(checkpoint_prefix)
    _delete(meta_graph_filename(prefix, meta_graph_suffix))
    if checkpoint_format_version == 2:
        # The index goes first: what it lists must exist for as long as it does.
        _delete(f"{prefix}.index")
        _delete(f"{glob.escape(prefix)}.data-?????-of-?????")
    else:
        _delete(prefix)


def _delete(pattern: str) -> None:
    for path in filesystems.matching(pattern):
        with tf_errors(path), suppress(FileNotFoundError):
            filesystems.of(path).remove(path)


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The MetaGraphDef file of a checkpoint; the shard part of its name does not count."""
    base = re.sub(r"-[\d\?]+-of-\d+$", "", checkpoint_filename)
    return f"{base}.{meta_graph_suffix}"


def object_graph_keys(prefix: str) -> dict[str, str] | None:
    """Keys by variables' names in an object-based checkpoint; None of another checkpoint."""
    reader = NewCheckpointReader(prefix)
    if not reader.has_tensor(OBJECT_GRAPH_PROTO_KEY):
        return None
    data = reader.get_tensor(OBJECT_GRAPH_PROTO_KEY)
    graph = parsed(protos.TrackableObjectGraph, data, f"the object graph of {prefix}")
    return {a.full_name: a.checkpoint_key for node in graph.nodes for a in node.attributes}
