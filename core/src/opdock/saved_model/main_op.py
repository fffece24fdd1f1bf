"""`tf.saved_model.main_op`: ops to run when a SavedModel is loaded."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable_lists import (
    global_variables_initializer,
    local_variables_initializer,
)
from opdock.lookup.initialization import tables_initializer
from opdock.ops.control import group

__all__ = ["main_op", "main_op_with_restore"]


def main_op() -> Operation:
    """The op that initializes all global and local variables and all tables."""
    return group(
        global_variables_initializer(), local_variables_initializer(), tables_initializer()
    )


def main_op_with_restore(restore_op_name: Any) -> Operation:
    """`main_op`, and then an op that restores.

    Args:
        restore_op_name: the op.

    Returns:
        The operation that stands for both.
    """
    with control_dependencies([main_op()]):
        return group(restore_op_name)
