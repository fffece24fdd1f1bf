"""`tf.train.ExponentialMovingAverage`."""

from __future__ import annotations

import itertools
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.graph.variables import initializers, variable_scope
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_lists import (
    global_variables,
    moving_average_variables,
    trainable_variables,
)
from opdock.ops import control
from opdock.train import slot_creator


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Moves `variable` towards `value`: `variable -= (variable - value) * (1 - decay)`.

    Args:
        variable: the average.
        value: a tensor of its shape.
        decay: how much of the average is kept, just below 1.
        zero_debias: correct the start from zero (Kingma & Ba 2014); the average is then kept in
            variables of its own.
        name: the operation's name.
    """
    with (
        name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope,
        colocate_with(variable.op),
    ):
        rate = convert_to_tensor(1.0 - decay, name="decay")
        if rate.dtype.base_dtype is not variable.dtype.base_dtype:
            rate = get("Cast")(rate, DstT=variable.dtype.base_dtype)
        if zero_debias:
            return variable.assign_sub(_debiased(variable, value, rate), name=scope)
        return variable.assign_sub((variable - value) * rate, name=scope)


def _debiased(unbiased: Any, value: Any, rate: Any) -> Any:
    """What to subtract from the average so that it has no bias to its start at zero."""
    with variable_scope.variable_scope(unbiased.op.name, values=[unbiased, value, rate]):
        zeros = initializers.zeros_initializer()
        dtype = unbiased.dtype.base_dtype
        biased = variable_scope.get_variable(
            _unused("biased"),
            initializer=zeros,
            shape=unbiased.get_shape(),
            trainable=False,
            dtype=dtype,
        )
        step = variable_scope.get_variable(
            _unused("local_step"), shape=[], dtype=dtype, initializer=zeros, trainable=False
        )
        new_biased = biased.assign_sub((biased - value) * rate)
        new_step = step.assign_add(convert_to_tensor(1, dtype))
        correction = 1 - get("Pow")(1.0 - rate, convert_to_tensor(new_step))
        return unbiased - new_biased / correction


def _unused(name: str) -> str:
    """A name of no variable in the current scope, unless its variables are shared."""
    scope = variable_scope.get_variable_scope()
    if scope.reuse:
        return name
    taken = {v.op.name for v in scope.global_variables()}
    tries = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    return next(n for n in tries if f"{scope.name}/{n}" not in taken)


class ExponentialMovingAverage:
    """Keeps moving averages of variables or tensors.

    Args:
        decay: how much of an average is kept at each step.
        num_updates: a step counter; the decay is then `min(decay, (1 + n) / (10 + n))`.
        zero_debias: correct averages of tensors for their start at zero.
        name: the suffix of the averages' names.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The suffix of the averages' names."""
        return self._name

    def apply(self, var_list: Any = None) -> Any:
        """An operation that updates the averages of `var_list`, made when missing.

        Raises:
            TypeError: an item has no floating type.
            ValueError: an average exists already.
        """
        items = trainable_variables() if var_list is None else list(var_list)
        debias = set()
        for var in items:
            if var.dtype.base_dtype not in (
                dtypes.float16,
                dtypes.bfloat16,
                dtypes.float32,
                dtypes.float64,
            ):
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if _key(var) not in self._averages:
                self._averages[_key(var)] = self._make(var)
                if self._zero_debias and not isinstance(var, Variable):
                    debias.add(_key(var))
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = get("Cast")(convert_to_tensor(self._num_updates), DstT=dtypes.float32)
                decay = get("Minimum")(decay, (1.0 + count) / (10.0 + count))
            updates = [
                assign_moving_average(self._averages[_key(v)], v, decay, _key(v) in debias)
                for v in items
            ]
            return control.group(*updates, name=scope)

    def _make(self, var: Any) -> Any:
        graph = get_default_graph()
        with graph.control_dependencies(None):
            if isinstance(var, Variable):
                average = slot_creator.create_slot(var, var.initialized_value(), self._name)
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
                return average
            return slot_creator.create_zeros_slot(
                var,
                self._name,
                colocate_with_primary=var.op.type in ("Variable", "VariableV2", "VarHandleOp"),
            )

    def average(self, var: Any) -> Any:
        """The average of a variable or tensor, or None."""
        return self._averages.get(_key(var))

    def average_name(self, var: Any) -> str:
        """The name under which the average of `var` is (or would be) saved."""
        if _key(var) in self._averages:
            name: str = self._averages[_key(var)].op.name
            return name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """Names to variables for a Saver that loads averages in place of the variables."""
        if moving_avg_variables is None:
            moving_avg_variables = trainable_variables() + moving_average_variables()
        averaged = list(dict.fromkeys(moving_avg_variables))
        names = {self.average_name(v): v for v in averaged}
        taken = {v.op.name for v in averaged}
        for v in list(dict.fromkeys(global_variables())):
            if v.op.name not in taken and v.op.name not in names:
                names[v.op.name] = v
        return names


def _key(var: Any) -> Any:
    return var.op if isinstance(var, Variable) else var
