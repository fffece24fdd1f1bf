"""Looking into checkpoints by directory or prefix."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from opdock.io import filesystems
from opdock.io.checkpoint_reader import CheckpointReader, NewCheckpointReader
from opdock.io.files import as_path
from opdock.train.checkpoint_management import latest_checkpoint

__all__ = [
    "NewCheckpointReader", "checkpoints_iterator", "list_variables", "load_checkpoint",
    "load_variable", "wait_for_new_checkpoint",
]  # fmt: skip

_log = logging.getLogger("tensorflow")


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Opens a checkpoint.

    Args:
        ckpt_dir_or_file: a directory, whose latest checkpoint is taken, or a prefix.

    Returns:
        A `CheckpointReader`.

    Raises:
        ValueError: the directory has no checkpoint.
        tf.errors.NotFoundError: there is no checkpoint with this prefix.
    """
    path = as_path(ckpt_dir_or_file)
    found = latest_checkpoint(path) if filesystems.isdir(path) else path
    if found is None:
        raise ValueError(
            f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}"
        )
    return NewCheckpointReader(found)


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """The value of one variable.

    Args:
        ckpt_dir_or_file: a directory or a prefix, as in `load_checkpoint`.
        name: the variable's name, with or without ":0".

    Returns:
        A NumPy array.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Name and shape of every variable, by name.

    Args:
        ckpt_dir_or_file: a directory or a prefix, as in `load_checkpoint`.

    Returns:
        A list of (name, shape).
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def wait_for_new_checkpoint(
    checkpoint_dir: Any, last_checkpoint: str | None = None, seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:  # fmt: skip
    """Waits until a directory's state file names another checkpoint.

    Args:
        checkpoint_dir: the directory.
        last_checkpoint: the checkpoint that is known.
        seconds_to_sleep: how long to wait before looking again.
        timeout: how many seconds to wait at most; for ever when None.

    Returns:
        The prefix of the new checkpoint, or None when time ran out.
    """
    _log.info("Waiting for new checkpoint at %s", checkpoint_dir)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        found = latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            _log.info("Found new checkpoint at %s", found)
            return found
        if end is not None and time.monotonic() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: Any, min_interval_secs: float = 0, timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:  # fmt: skip
    """Yields a directory's checkpoints as they come; those that are overtaken are left out.

    Args:
        checkpoint_dir: the directory.
        min_interval_secs: how many seconds there are at least between two checkpoints.
        timeout: how many seconds to wait for a checkpoint; for ever when None.
        timeout_fn: called when time ran out; whether to stop. Without it the iteration stops.

    Yields:
        Prefixes of checkpoints.
    """
    path: str | None = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if found is None:
            if timeout_fn is None:
                _log.info("Timed-out waiting for a checkpoint.")
                return
            if timeout_fn():
                return
            continue
        start, path = time.monotonic(), found
        yield found
        rest = start + min_interval_secs - time.monotonic()
        if rest > 0:
            time.sleep(rest)
