"""What `tf.contrib.framework` does with variables: makes them, finds them, places them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from opdock import dtypes
from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.scopes import control_dependencies, device, name_scope
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_scope import (
    VariableScope,
    get_variable,
    get_variable_scope,
)
from opdock.ops.check import Assert
from opdock.ops.compare import logical_not
from opdock.ops.fill import zeros
from opdock.ops.state import assign, is_variable_initialized
from opdock.train.training_util import assert_global_step, get_global_step

__all__ = [
    "VariableDeviceChooser", "add_model_variable", "assert_or_get_global_step", "filter_variables",
    "get_local_variables", "get_model_variables", "get_trainable_variables", "get_unique_variable",
    "get_variable_full_name", "get_variables", "get_variables_by_name", "get_variables_by_suffix",
    "get_variables_to_restore", "global_variable", "local_variable", "model_variable", "variable",
    "zero_initializer",
]  # fmt: skip


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
        told = f"input is already initialized: {ref.op.name}"
        with control_dependencies([Assert(logical_not(known), [told])]):
            return assign(ref, zeros(ref.shape, ref.dtype.base_dtype))


def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """The graph's global step, or the one given, if it can be one.

    Args:
        graph: the graph to look in; the default graph if None.
        global_step_tensor: a variable or tensor to check, or None.

    Returns:
        The global step; None where the graph has none.
    """
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def local_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable in LOCAL_VARIABLES that is neither trained nor saved.

    Args:
        initial_value, validate_shape, name, use_resource: as of `tf.Variable`.
    """
    return Variable(
        initial_value, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape, name=name, use_resource=use_resource,
    )  # fmt: skip


def global_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable in GLOBAL_VARIABLES that is not trained.

    Args:
        initial_value, validate_shape, name, use_resource: as of `tf.Variable`.
    """
    return Variable(
        initial_value, trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES],
        validate_shape=validate_shape, name=name, use_resource=use_resource,
    )  # fmt: skip


@add_arg_scope
def variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
    regularizer: Any = None, trainable: bool = True, collections: Any = None,
    caching_device: Any = None, device: Any = None, partitioner: Any = None,
    custom_getter: Any = None, use_resource: bool | None = None, synchronization: Any = None,
    aggregation: Any = None,
) -> Any:  # fmt: skip
    """`tf.get_variable` with a device, which `arg_scope` can give defaults.

    Args:
        name, shape, dtype, initializer, regularizer, trainable, caching_device, partitioner,
            use_resource, synchronization, aggregation: as of `tf.get_variable`.
        collections: collections to add it to; GLOBAL_VARIABLES by default.
        device: a device, or a function from the operation to one.
        custom_getter: called in the place of `tf.get_variable`, with `reuse` beside its arguments.

    Returns:
        The variable: made, or shared, as the scope's `reuse` says.
    """
    names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else [*dict.fromkeys(collections)]
    getter: Any = get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=get_variable_scope().reuse)
    with _placed(device):
        return getter(
            name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
            trainable=trainable, collections=names, caching_device=caching_device,
            partitioner=partitioner, use_resource=use_resource, synchronization=synchronization,
            aggregation=aggregation,
        )  # fmt: skip


def _placed(where: Any) -> Any:
    # An argument of `variable` has the name of the function.
    return device(where or "")


@add_arg_scope
def model_variable(
    name: str, shape: Any = None, dtype: Any = dtypes.float32, initializer: Any = None,
    regularizer: Any = None, trainable: bool = True, collections: Any = None,
    caching_device: Any = None, device: Any = None, partitioner: Any = None,
    custom_getter: Any = None, use_resource: bool | None = None, synchronization: Any = None,
    aggregation: Any = None,
) -> Any:  # fmt: skip
    """A `variable` that is a part of the model: in MODEL_VARIABLES too.

    Args:
        name, shape, dtype, initializer, regularizer, trainable, caching_device, device,
            partitioner, custom_getter, use_resource, synchronization, aggregation: as of
            `variable`.
        collections: collections beside GLOBAL_VARIABLES and MODEL_VARIABLES.

    Returns:
        The variable: made, or shared, as the scope's `reuse` says.
    """
    names = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(
        name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=trainable, collections=names, caching_device=caching_device, device=device,
        partitioner=partitioner, custom_getter=custom_getter, use_resource=use_resource,
        synchronization=synchronization, aggregation=aggregation,
    )  # fmt: skip


def add_model_variable(var: Any) -> None:
    """Adds a variable to MODEL_VARIABLES, if it is not there.

    Args:
        var: the variable.
    """
    if not any(var is known for known in get_collection(GraphKeys.MODEL_VARIABLES)):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def get_variables(
    scope: VariableScope | str | None = None,
    suffix: str | None = None,
    collection: str = GraphKeys.GLOBAL_VARIABLES,
) -> list[Any]:
    """The variables of a collection whose names begin and end as asked.

    Args:
        scope: a variable scope, or how names begin: a regular expression.
        suffix: how names end, ":0" aside.
        collection: the collection.
    """
    begin = scope.name if isinstance(scope, VariableScope) else scope
    if suffix is None:
        return get_collection(collection, begin)
    end = suffix if ":" in suffix else f"{suffix}:"
    return get_collection(collection, f"{begin or ''}.*{end}")


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables of MODEL_VARIABLES, as `get_variables` takes `scope` and `suffix`."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables of LOCAL_VARIABLES, as `get_variables` takes `scope` and `suffix`."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables of TRAINABLE_VARIABLES, as `get_variables` takes `scope` and `suffix`."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_to_restore(include: Any = None, exclude: Any = None) -> list[Any]:
    """The variables of some scopes, without those of others.

    Args:
        include: a list of scopes; all variables if None.
        exclude: a list of scopes, or None.

    Raises:
        TypeError: one of them is no list or tuple.
    """
    for name, given in (("include", include), ("exclude", exclude)):
        if given is not None and not isinstance(given, (list, tuple)):
            raise TypeError(f"{name} is provided but is not a list or a tuple.")
    scopes = [None] if include is None else include
    left_out = {id(found) for scope in exclude or () for found in get_variables(scope)}
    wanted = [found for scope in scopes for found in get_variables(scope)]
    return [found for found in wanted if id(found) not in left_out]


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The global variables whose names end so, as `get_variables` takes both."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The global variables with this last part of their names.

    Args:
        given_name: the name without scopes.
        scope: as `get_variables` takes it.
    """
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The global variable of that name.

    Args:
        var_op_name: the whole name, without ":0".

    Raises:
        ValueError: there is none, or only variables whose names begin so.
    """
    candidates = get_variables(var_op_name)
    if not candidates:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    for candidate in candidates:
        if candidate.op.name == var_op_name:
            return candidate
    raise ValueError(f"Variable {var_op_name} does not uniquely identify a variable")


def get_variable_full_name(var: Any) -> str:
    """The name of a variable in checkpoints: one for all parts of a partitioned variable.

    Args:
        var: a variable, or a part of one.
    """
    info = var._save_slice_info
    return str(info.full_name if info else var.op.name)


class VariableDeviceChooser:
    """A function for `tf.device` that hands variables to parameter servers in turn.

    Args:
        num_tasks: how many parameter servers there are; with none, devices have no job.
        job_name: their job.
        device_type, device_index, replica: the rest of each device.
    """

    def __init__(
        self, num_tasks: int = 0, job_name: str = "ps", device_type: str = "CPU",
        device_index: int | None = 0, replica: int | None = None,
    ) -> None:  # fmt: skip
        self._own = {"replica": replica, "device_type": device_type, "device_index": device_index}
        self._num_tasks, self._job_name = num_tasks, job_name
        self._next_task_id = 0

    def __call__(self, op: Any) -> str:
        """The next device."""
        found: dict[str, Any] = dict(self._own)
        if self._num_tasks > 0:
            found.update(job=self._job_name, task=self._next_task_id)
            self._next_task_id = (self._next_task_id + 1) % self._num_tasks
        return DeviceSpec(**found).to_string()


def filter_variables(
    var_list: Iterable[Any],
    include_patterns: list[str] | None = None,
    exclude_patterns: list[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """The variables whose names have one of some patterns, and none of others.

    Args:
        var_list: variables.
        include_patterns: regular expressions; None for all variables.
        exclude_patterns: regular expressions, or None.
        reg_search: whether a pattern may be anywhere in a name, not just where it begins.
    """
    matches = re.search if reg_search else re.match

    def any_of(patterns: list[str], name: str) -> bool:
        return any(matches(pattern, name) for pattern in patterns)

    return [
        one
        for one in var_list
        if (include_patterns is None or any_of(include_patterns, one.name))
        and not any_of(exclude_patterns or [], one.name)
    ]
