"""Slots: variables that an optimizer or a moving average keeps beside another variable.

Their names (`w/Adam`, `w/Adam_1`) are part of the checkpoint format.
"""

from __future__ import annotations

import contextlib
from typing import Any

from opdock import dtypes
from opdock.distribute.modes import strategy_in_scope
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import colocate_with
from opdock.graph.variables import initializers, variable_scope
from opdock.graph.variables.variable import Variable


def _slot(primary: Any, value: Any, validate_shape: bool, shape: Any, dtype: Any) -> Any:
    # A part's slot is not cut once more. The scope is the slot's own, so nothing is to be put back.
    variable_scope.get_variable_scope().set_partitioner(None)
    slot = variable_scope.get_variable(
        "",
        initializer=value,
        trainable=False,
        use_resource=isinstance(primary, Variable) and not primary.dtype._is_ref_dtype,
        shape=shape,
        dtype=dtype,
        validate_shape=validate_shape,
    )
    info = getattr(primary, "_save_slice_info", None)
    if info is not None and slot.shape.raw == primary.shape.raw:
        # The slot of a part is the same part of the whole variable's slot, by the name that TF cuts
        # out: where a variable scope is open it has more than the slot's own. Checkpoints of canned
        # estimators are full of them ("dnn/hiddenlayer_0/bias/t_0/Adagrad").
        suffix = slot.op.name[len(primary.op.name) + 1 :]
        whole = f"{info.full_name}/{suffix}"
        slot._set_save_slice_info(
            Variable.SaveSliceInfo(whole, info.full_shape, info.var_offset, info.var_shape)
        )
    return slot


def beside(variable: Any) -> contextlib.AbstractContextManager[Any]:
    """Inside, variables are made on the device, or the devices, of another one."""
    strategy = strategy_in_scope()
    if strategy is None:
        return colocate_with(variable.op)
    found: contextlib.AbstractContextManager[Any]
    found = strategy.extended.colocate_vars_with(variable)
    return found


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Any:
    """A slot for `primary` with initial value `val`."""
    return _scoped(
        primary, val, val.shape.is_fully_defined(), None, None, name, colocate_with_primary
    )


def create_slot_with_initializer(
    primary: Any,
    initializer: Any,
    shape: Any,
    dtype: Any,
    name: str,
    colocate_with_primary: bool = True,
) -> Any:
    """A slot for `primary` of a given shape and type, made by an initializer."""
    validate = shape.is_fully_defined()
    return _scoped(primary, initializer, validate, shape, dtype, name, colocate_with_primary)


def _scoped(
    primary: Any, value: Any, validate: bool, shape: Any, dtype: Any, name: str, colocate: bool
) -> Any:
    with variable_scope.variable_scope(None, f"{primary.op.name}/{name}"):
        if not colocate:
            return _slot(primary, value, validate, shape, dtype)
        with beside(primary):
            return _slot(primary, value, validate, shape, dtype)


def create_zeros_slot(
    primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True
) -> Any:
    """A slot of zeros in the shape of `primary`."""
    element = primary.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)
    shape = primary.get_shape()
    if shape.is_fully_defined():
        zeros = initializers.zeros_initializer(element)
        return create_slot_with_initializer(
            primary, zeros, shape, element, name, colocate_with_primary
        )

    source = primary.initialized_value() if hasattr(primary, "initialized_value") else primary
    return create_slot(primary, get("ZerosLike")(source), name, colocate_with_primary)
