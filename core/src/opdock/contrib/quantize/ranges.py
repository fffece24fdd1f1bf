"""Rounding to the values that bytes can have, over ranges that are learned beside the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.initializers import constant_initializer
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.fake_quant import (
    fake_quant_with_min_max_args,
    fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_per_channel,
)
from opdock.ops.reduce import reduce_max, reduce_min
from opdock.ops.state import assign
from opdock.train.moving_averages import assign_moving_average

__all__ = ["fixed_quantize", "last_value_quantize", "moving_average_quantize"]

Ends = tuple[Any, Any]


def fixed_quantize(
    inputs: Any, init_min: float = -6.0, init_max: float = 6.0, scope: str | None = None
) -> Tensor:
    """Rounds to 256 values of a range that stays.

    Args:
        inputs: float32.
        init_min, init_max: the range.
        scope: a name for the scope.
    """
    with name_scope(scope, "FixedQuantize", values=[inputs]):
        return fake_quant_with_min_max_args(inputs, min=init_min, max=init_max)


def last_value_quantize(
    inputs: Any, per_channel: bool = False, init_min: float = -6.0, init_max: float = 6.0,
    vars_collection: str | None = None, name_prefix: str = "LastValueQuant", reuse: Any = None,
    is_training: bool = True, num_bits: int = 8, narrow_range: bool = False,
    symmetric: bool = False,
) -> Tensor:  # fmt: skip
    """Rounds to values of the range that the inputs had in the last training step.

    Args:
        inputs: float32.
        per_channel: whether each entry of the last axis has a range; rank 1, 2 or 4.
        init_min, init_max: the range at first.
        vars_collection: a collection for the variables `min` and `max`, beside all variables.
        name_prefix: a name for their scope.
        reuse: whether they are there already.
        is_training: whether the range changes.
        num_bits: how many bits there are, 2 to 16.
        narrow_range: whether the lowest value is left out.
        symmetric: whether both ends lie equally far from 0.
    """
    return _quantized(
        inputs, per_channel, (init_min, init_max), vars_collection, name_prefix, reuse, num_bits,
        narrow_range, symmetric, _last if is_training else None,
    )  # fmt: skip


def moving_average_quantize(
    inputs: Any, per_channel: bool = False, init_min: float = -6.0, init_max: float = 6.0,
    ema_decay: float = 0.999, vars_collection: str | None = GraphKeys.MOVING_AVERAGE_VARIABLES,
    name_prefix: str = "MovingAvgQuantize", reuse: Any = None, is_training: bool = True,
    num_bits: int = 8, narrow_range: bool = False, symmetric: bool = False,
) -> Tensor:  # fmt: skip
    """Rounds to values of a range that follows that of the inputs; see `last_value_quantize`.

    Args:
        inputs: float32.
        per_channel: whether each entry of the last axis has a range.
        init_min, init_max: the range at first.
        ema_decay: how much of it each step keeps.
        vars_collection: a collection for the variables.
        name_prefix: a name for their scope.
        reuse: whether they are there already.
        is_training: whether the range changes.
        num_bits: how many bits there are.
        narrow_range: whether the lowest value is left out.
        symmetric: whether both ends lie equally far from 0.
    """

    def follow(variables: Ends, ends: Ends) -> Ends:
        low, high = (
            assign_moving_average(variable, end, ema_decay, name=name)
            for variable, end, name in zip(
                variables, ends, ("AssignMinEma", "AssignMaxEma"), strict=True
            )
        )
        return low, high

    return _quantized(
        inputs, per_channel, (init_min, init_max), vars_collection, name_prefix, reuse, num_bits,
        narrow_range, symmetric, follow if is_training else None,
    )  # fmt: skip


def _last(variables: Ends, ends: Ends) -> Ends:
    low, high = variables
    return assign(low, ends[0], name="AssignMinLast"), assign(high, ends[1], name="AssignMaxLast")


def _quantized(
    inputs: Any, per_channel: bool, start: tuple[float, float], collection: str | None,
    prefix: str, reuse: Any, bits: int, narrow: bool, symmetric: bool,
    update: Callable[[Ends, Ends], Ends] | None,
) -> Tensor:  # fmt: skip
    """Rounds to a range of variables, which `update` may change first."""
    with variable_scope(None, default_name=prefix, values=[inputs], reuse=reuse) as scope:
        scope.set_partitioner(None)
        shape = inputs.get_shape()
        if per_channel and len(shape) not in (1, 2, 4):
            raise AssertionError(f"Expected 1D, 2D or 4D input, was: {shape} in  scope: {prefix}")
        kept = ([collection] if collection else []) + [GraphKeys.GLOBAL_VARIABLES]
        low, high = (
            get_variable(
                name,
                shape=[shape[-1]] if per_channel else [],
                initializer=constant_initializer(value),
                collections=kept,
                trainable=False,
            )
            for name, value in zip(("min", "max"), start, strict=True)
        )
        ends: Ends = (low, high)
        if update is not None:
            ends = update(ends, _range(inputs, per_channel, bits, narrow, symmetric))
        fake = fake_quant_with_min_max_vars
        if per_channel:
            fake = fake_quant_with_min_max_vars_per_channel
        return fake(inputs, *ends, num_bits=bits, narrow_range=narrow)


def _range(inputs: Any, per_channel: bool, bits: int, narrow: bool, symmetric: bool) -> Ends:
    """The range of the inputs, with 0 in it."""
    low, high = inputs, inputs
    axes: Sequence[int] | None = None
    if per_channel:
        axes = list(range(len(inputs.get_shape()) - 1))
    if axes != []:
        low = reduce_min(inputs, axis=axes, name="BatchMin")
        high = reduce_max(inputs, axis=axes, name="BatchMax")
    if not symmetric:
        return minimum(low, 0.0), maximum(high, 0.0)
    # In two's complement there is one more value below 0 than above.
    ratio = -1.0 if narrow else -((1 << bits) - 2) / (1 << bits)
    return minimum(low, high / ratio), maximum(high, low * ratio)
