"""Lists of variables, and the operations that initialize them."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import control_dependencies, device, name_scope

__all__ = [
    "all_variables", "assert_variables_initialized", "global_variables",
    "global_variables_initializer", "initialize_all_variables", "initialize_local_variables",
    "initialize_variables", "local_variables", "local_variables_initializer", "model_variables",
    "moving_average_variables", "report_uninitialized_variables", "trainable_variables",
    "variables_initializer",
]  # fmt: skip


def _collection(key: str, scope: str | None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that are shared and saved, those whose names match `scope` when given."""
    return _collection(GraphKeys.GLOBAL_VARIABLES, scope)


all_variables = global_variables


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process that are not saved.

    Args:
        scope: a regular expression that names have to begin with; None for all.
    """
    return _collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that inference needs.

    Args:
        scope: a regular expression that names have to begin with; None for all.
    """
    return _collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers update by default.

    Args:
        scope: a regular expression that names have to begin with; None for all.
    """
    return _collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have a moving average.

    Args:
        scope: a regular expression that names have to begin with; None for all.
    """
    return _collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def _group(ops: list[Operation], name: str) -> Operation:
    with get_default_graph().control_dependencies(ops):
        done: Operation = get("NoOp")(name=name)
    return done


def variables_initializer(var_list: list[Any], name: str = "init") -> Operation:
    """An operation that initializes the given variables.

    Args:
        var_list: the variables; by default all that there are.
        name: a name for the operation.
    """
    return _group([v.initializer for v in var_list], name)


initialize_variables = variables_initializer


def global_variables_initializer() -> Operation:
    """An operation that initializes all global variables."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """An operation that initializes all local variables."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer


def report_uninitialized_variables(
    var_list: list[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Any:
    """A string tensor with the names of the variables that have no value yet.

    Args:
        var_list: the variables; by default all that there are.
        name: a name for the operation.
    """
    from opdock.graph.nodes.constant import constant

    if var_list is None:
        var_list = global_variables() + local_variables()
    with name_scope(name), device("/cpu:0"):
        names = constant([v.op.name for v in var_list], dtypes.string)
        if not var_list:
            return constant([], dtypes.string)
        missing = get("LogicalNot")(get("Pack")([v._initialized() for v in var_list], axis=0))
        where = get("Reshape")(get("Where")(missing), [-1])
        return get("GatherV2")(names, where, 0)


def assert_variables_initialized(var_list: list[Any] | None = None) -> Any:
    """A tensor that fails unless all variables have a value; None without variables.

    Args:
        var_list: the variables; by default all that there are.
    """
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    # A rank is known without its tensor, and a read without a use is dropped; a check is not.
    reads = [v.read_value() for v in var_list]
    checks = [
        get("Assert")(v._initialized(), [read]) for v, read in zip(var_list, reads, strict=True)
    ]
    with control_dependencies(checks):
        ranks = [get("Rank")(read) for read in reads]
        return ranks[0] if len(ranks) == 1 else get("Pack")(ranks)
