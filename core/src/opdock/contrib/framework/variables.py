"""What `tf.contrib.framework` does with variables."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import Assert
from opdock.ops.compare import logical_not
from opdock.ops.fill import zeros
from opdock.ops.state import assign, is_variable_initialized

__all__ = ["zero_initializer"]


def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """Gives a variable without a value zeros, in place of its initializer.

    Args:
        ref: the variable, whose shape is known.
        use_locking: accepted for TF's signature.
        name: a name for the operations.

    Returns:
        The variable's value; when run, InvalidArgumentError where it has one already.
    """
    with name_scope(name):
        known = is_variable_initialized(ref)
        told = f"{ref.op.name} is already initialized"
        with control_dependencies([Assert(logical_not(known), [told])]):
            return assign(ref, zeros(ref.shape, ref.dtype.base_dtype))
