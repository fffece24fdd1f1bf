"""`tf.train.ExponentialMovingAverage`."""

from __future__ import annotations

import itertools
from typing import Any

from opdock import dtypes
from opdock.distribute.modes import has_strategy, strategy_in_scope
from opdock.distribute.reductions import ReduceOp
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
from opdock.ops.composed import division
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
    if has_strategy():
        return _assign_on_replicas(variable, value, decay, zero_debias, name)
    with (
        name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope,
        colocate_with(variable.op),
    ):
        rate = _rate(variable, decay)
        if zero_debias:
            return variable.assign(_debiased(variable, value, rate), name=scope)
        return variable.assign_sub((variable - value) * rate, name=scope)


def _assign_on_replicas(
    variable: Any, value: Any, decay: Any, zero_debias: bool, name: str | None
) -> Any:
    """The same for each copy of a variable, towards the mean of the replicas' values."""
    from opdock.distribute.context import get_replica_context

    def move(copy: Any, value: Any, *parts: Any) -> Any:
        rate = _rate(copy, decay)
        if parts:
            return copy.assign(_debiased(copy, value, rate, parts))
        return copy.assign_sub((copy - value) * rate)

    def merged(strategy: Any, variable: Any, value: Any) -> Any:
        mean = strategy.extended.reduce_to(ReduceOp.MEAN, value, variable)
        parts = ()
        if zero_debias:
            with variable_scope.variable_scope(variable.op.name):
                parts = _parts(variable)
        return strategy.extended.update(variable, move, args=(mean, *parts))

    replica = get_replica_context()
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]):
        if replica is None:
            return merged(strategy_in_scope(), variable, value)
        return replica.merge_call(merged, args=(variable, value))


def _rate(variable: Any, decay: Any) -> Any:
    rate = convert_to_tensor(1.0 - decay, name="decay")
    if rate.dtype.base_dtype is not variable.dtype.base_dtype:
        rate = get("Cast")(rate, DstT=variable.dtype.base_dtype)
    return rate


def _parts(unbiased: Any) -> tuple[Any, ...]:
    """The variables that an average without bias is made of: one with bias, and its steps."""
    zeros, dtype = initializers.zeros_initializer(), unbiased.dtype.base_dtype
    biased = variable_scope.get_variable(
        _free_name("biased"), initializer=zeros, shape=unbiased.get_shape(), trainable=False,
        dtype=dtype,
    )  # fmt: skip
    step = variable_scope.get_variable(
        _free_name("local_step"), shape=[], dtype=dtype, initializer=zeros, trainable=False
    )
    return biased, step


def _debiased(unbiased: Any, value: Any, rate: Any, parts: tuple[Any, ...] = ()) -> Any:
    """The average without its bias to the start at zero; parts that are not given are made."""
    with variable_scope.variable_scope(unbiased.op.name, values=[unbiased, value, rate]):
        biased, step = parts or _parts(unbiased)
        new_biased = biased.assign_sub((biased - value) * rate)
        new_step = step.assign_add(convert_to_tensor(1, unbiased.dtype.base_dtype))
        correction = 1 - get("Pow")(1.0 - rate, convert_to_tensor(new_step))
        return new_biased / correction


def _free_name(name: str) -> str:
    """A name that no variable of the scope has, unless the scope reuses variables."""
    scope = variable_scope.get_variable_scope()
    taken = {v.op.name.removeprefix(f"{scope.name}/") for v in scope.global_variables()}
    if scope.reuse or name not in taken:
        return name
    return next(n for i in itertools.count(1) if (n := f"{name}_{i}") not in taken)


def weighted_moving_average(
    value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The moving average of `value` in which each has a weight.

    Args:
        value: a tensor.
        decay: how much of the average is kept.
        weight: what `value` weighs now; its shape must go with that of `value`.
        truediv: whether integers are divided as real numbers.
        collections: where the two variables go that keep the sums.
        name: the scope's name, "WeightedMovingAvg" by default.

    Returns:
        The average, moved.
    """
    with variable_scope.variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:

        def moved(what: Any, of: Any, key: str) -> Any:
            kept = variable_scope.get_variable(
                key, shape=of.get_shape(), dtype=of.dtype, trainable=False,
                initializer=initializers.zeros_initializer(), collections=collections,
            )  # fmt: skip
            return assign_moving_average(kept, what, decay, zero_debias=False)

        numerator = moved(value * weight, value, "value_x_weight")
        denominator = moved(weight, weight, "weight")
        divide = division.truediv if truediv else division.div
        return divide(numerator, denominator, name=scope.name)


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
