"""Looking into checkpoints by directory or prefix."""

from __future__ import annotations

import os
from typing import Any

from opdock.io.checkpoint_reader import CheckpointReader, NewCheckpointReader
from opdock.io.files import as_path
from opdock.train.checkpoint_management import latest_checkpoint

__all__ = ["NewCheckpointReader", "list_variables", "load_checkpoint", "load_variable"]


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
    found = latest_checkpoint(path) if os.path.isdir(path) else path
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
