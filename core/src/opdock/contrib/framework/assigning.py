"""Values for variables that come from outside of the graph: from a checkpoint, or from arrays.

They are fed to placeholders, so that the graph does not hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from opdock.api import logging
from opdock.contrib.framework.variables import get_unique_variable, get_variable_full_name
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.ops.control import group
from opdock.ops.identity import placeholder
from opdock.train.saver import Saver

__all__ = [
    "assign_from_checkpoint", "assign_from_checkpoint_fn", "assign_from_values",
    "assign_from_values_fn",
]  # fmt: skip

Assignment = tuple[Any, dict[Any, np.ndarray[Any, Any]]]


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> Assignment:
    """An operation that gives variables these values.

    Args:
        var_names_to_values: arrays by the names of global variables.

    Returns:
        The operation, and what to feed when it is run.

    Raises:
        ValueError: there is no such variable, or several whose names begin so.
    """
    return _assignment((_named(name), value) for name, value in var_names_to_values.items())


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that gives variables these values in a session, as `assign_from_values`."""
    assign_op, feed_dict = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign_op, feed_dict)


def _named(name: str) -> Any:
    found = get_collection(GraphKeys.GLOBAL_VARIABLES, name)
    if not found:
        raise ValueError(f"Variable {name} wasn't found")
    return found[0] if len(found) == 1 else get_unique_variable(name)


def _assignment(values: Iterator[tuple[Any, Any]]) -> Assignment:
    fed, assigned = {}, []
    for variable, value in values:
        shape = variable.get_shape()
        where = placeholder(variable.dtype.base_dtype, shape, f"placeholder/{variable.op.name}")
        assigned.append(variable.assign(where))
        fed[where] = np.reshape(value, shape.as_list())
    return group(*assigned), fed


def assign_from_checkpoint(
    model_path: Any, var_list: Any, ignore_missing_vars: bool = False
) -> Assignment:
    """An operation that gives variables their values of a checkpoint.

    Args:
        model_path: the checkpoint.
        var_list: variables or parts of variables, or a dict of such, or of lists of parts, by
            their names in the checkpoint.
        ignore_missing_vars: whether what the checkpoint lacks is left as it is, with a warning.

    Returns:
        The operation, and what to feed when it is run.

    Raises:
        ValueError: the checkpoint lacks a variable, or has it in another shape.
    """
    reader = NewCheckpointReader(model_path)

    def values() -> Iterator[tuple[Any, Any]]:
        for name, variables in _by_saved_name(var_list).items():
            if not reader.has_tensor(name):
                told = f"Checkpoint is missing variable [{name}]"
                if not ignore_missing_vars:
                    raise ValueError(told)
                logging.warning(told)
                continue
            saved = reader.get_tensor(name)
            for variable in variables:
                yield variable, _part(saved, variable, name)

    return _assignment(values())


def _by_saved_name(var_list: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    if isinstance(var_list, Mapping):
        for name, given in var_list.items():
            found[name] = list(given) if isinstance(given, (list, tuple)) else [given]
    else:
        for variable in var_list:
            found.setdefault(get_variable_full_name(variable), []).append(variable)
    return found


def _part(saved: Any, variable: Any, name: str) -> Any:
    info = variable._save_slice_info
    if info:
        window = zip(info.var_offset, info.var_shape, strict=True)
        return saved[tuple(slice(begin, begin + size) for begin, size in window)]
    if variable.get_shape() != saved.shape:
        raise ValueError(
            f"Total size of new array must be unchanged for {name} lh_shape: [{saved.shape}], "
            f"rh_shape: [{variable.get_shape()}]"
        )
    return saved


def assign_from_checkpoint_fn(
    model_path: Any,
    var_list: Any,
    ignore_missing_vars: bool = False,
    reshape_variables: bool = False,
) -> Callable[[Any], None] | None:
    """A function that gives variables their values of a checkpoint, in a session.

    Args:
        model_path: the checkpoint.
        var_list: variables, or a dict of them by their names in the checkpoint.
        ignore_missing_vars: whether what the checkpoint lacks is left as it is, with a warning.
        reshape_variables: whether values may have another shape with as many elements.

    Returns:
        The function; None where no variable is left.

    Raises:
        ValueError: `var_list` is empty.
    """
    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        reader = NewCheckpointReader(model_path)
        by_name = (
            dict(var_list)
            if isinstance(var_list, Mapping)
            else {variable.op.name: variable for variable in var_list}
        )
        for name in [name for name in by_name if not reader.has_tensor(name)]:
            logging.warning("Variable %s missing in checkpoint %s", name, model_path)
            del by_name[name]
        if not by_name:
            logging.warning("No Variables to restore")
            return None
        var_list = by_name
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)
