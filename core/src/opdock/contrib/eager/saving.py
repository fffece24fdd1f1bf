"""Checkpoints by variables' names where operations run as they are made: `tfe.Saver`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from opdock import errors
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.train import saver
from opdock.train.checkpoint_utils import list_variables, load_checkpoint

__all__ = ["Saver", "get_optimizer_variables", "restore_variables_on_create"]


class Saver:
    """`tf.train.Saver` without a session.

    Args:
        var_list: the variables to save and restore, a list or a dictionary of them by name.

    Raises:
        RuntimeError: operations do not run as they are made.
    """

    def __init__(self, var_list: Any) -> None:
        if not executing_eagerly():
            raise RuntimeError(
                "tfe.Saver can only be used when eager execution is enabled. Use tf.train.Saver "
                "when building graphs."
            )
        if isinstance(var_list, (list, tuple)):  # which may have a variable more than once
            var_list = list({id(v): v for v in var_list}.values())
        self._saver = saver.Saver(var_list=var_list)

    def save(self, file_prefix: str, global_step: Any = None) -> str | None:
        """Writes a checkpoint; returns the prefix of its files.

        Args:
            file_prefix: the prefix without the step.
            global_step: the step to append to it: an integer, tensor or variable.
        """
        return self._saver.save(
            None, file_prefix, write_meta_graph=False, global_step=global_step
        )  # fmt: skip

    def restore(self, file_prefix: str) -> None:
        """Gives the variables the values of a checkpoint.

        Args:
            file_prefix: what `save` returned, or `tf.train.latest_checkpoint`.
        """
        self._saver.restore(None, file_prefix)


def get_optimizer_variables(optimizer: Any) -> list[Any]:
    """The variables that a `tf.train.Optimizer` has made; `optimizer.variables()`."""
    found: list[Any] = optimizer.variables()
    return found


@contextlib.contextmanager
def restore_variables_on_create(
    save_path: str | None, map_func: Callable[[str], str] | None = None
) -> Iterator[None]:
    """Variables made inside begin with the values of a checkpoint.

    Args:
        save_path: the prefix of the checkpoint's files; None restores nothing.
        map_func: takes the name of a variable, and returns its name in the checkpoint.

    Raises:
        ValueError: operations do not run as they are made, or `map_func` is not callable.
        tf.errors.NotFoundError: when a variable is made that is not in the checkpoint.
    """
    if not executing_eagerly():
        raise ValueError(
            "Currently, restore_variables_on_create can only be used with eager execution enabled."
        )
    if map_func is not None and not callable(map_func):
        raise ValueError("map_func must be callable.")
    if not save_path:
        yield
        return
    reader = load_checkpoint(save_path)
    # Who makes another variable of a name that was restored wants it as it is made.
    left = {name for name, _ in list_variables(save_path)}
    known = frozenset(left)

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        made = next_creator(**kwargs)
        name = made._shared_name if map_func is None else map_func(made._shared_name)
        if name not in known:
            raise errors.NotFoundError(None, None, f"{name} not found in checkpoint")
        if name in left:
            left.remove(name)
            made.assign(reader.get_tensor(name))
        return made

    with variable_creator_scope(create):
        yield
