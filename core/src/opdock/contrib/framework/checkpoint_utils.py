"""What `tf.train` does with checkpoints, under the names that contrib gave the arguments."""

from __future__ import annotations

from typing import Any

from opdock.train import checkpoint_initializers, checkpoint_utils

__all__ = ["init_from_checkpoint", "list_variables", "load_checkpoint", "load_variable"]


def load_checkpoint(filepattern: Any) -> Any:
    """A reader of a checkpoint: see `tf.train.load_checkpoint`."""
    return checkpoint_utils.load_checkpoint(filepattern)


def load_variable(checkpoint_dir: Any, name: str) -> Any:
    """A variable's value in a checkpoint: see `tf.train.load_variable`."""
    return checkpoint_utils.load_variable(checkpoint_dir, name)


def list_variables(checkpoint_dir: Any) -> list[tuple[str, list[int]]]:
    """The variables of a checkpoint with their shapes: see `tf.train.list_variables`."""
    return checkpoint_utils.list_variables(checkpoint_dir)


def init_from_checkpoint(checkpoint_dir: Any, assignment_map: dict[str, Any]) -> None:
    """Has variables start with a checkpoint's values: see `tf.train.init_from_checkpoint`."""
    checkpoint_initializers.init_from_checkpoint(checkpoint_dir, assignment_map)
