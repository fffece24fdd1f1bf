"""Examples drawn by weights: some come several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable_scope import get_local_variable, variable_scope
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.identity import stop_gradient
from opdock.ops.random_dist import random_poisson
from opdock.ops.reduce import reduce_mean
from opdock.ops.tiling import repeat
from opdock.train.moving_averages import assign_moving_average

__all__ = ["resample_at_rate", "weighted_resample"]


def resample_at_rate(
    inputs: Sequence[Any], rates: Any, scope: str | None = None, seed: int | None = None,
    back_prop: bool = False,
) -> list[Tensor]:  # fmt: skip
    """Examples as often as drawn: a Poisson number of times, of a rate of their own.

    Args:
        inputs: tensors whose first dimension is that of examples.
        rates: how often each example comes on average.
        scope: a name for the operations.
        seed: of the random numbers.
        back_prop: whether gradients go through which examples come.

    Returns:
        A tensor of each of `inputs`.
    """
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = convert_to_tensor(rates, name="rates")
        counts = cast(random_poisson(rates, (), rates.dtype, seed=seed), dtypes.int32)
        which = _repeat_range(counts)
        if not back_prop:
            which = stop_gradient(which)
        return [gather(x, which) for x in inputs]


def _repeat_range(counts: Any, name: str | None = None) -> Tensor:
    """0 as often as the first number says, 1 as often as the second, and so on."""
    with name_scope(name, "repeat_range", [counts]):
        counts = reshape(convert_to_tensor(counts, name="counts"), [-1])
        return repeat(range_(shape(counts)[0]), counts)


def weighted_resample(
    inputs: Sequence[Any], weights: Any, overall_rate: Any, scope: str | None = None,
    mean_decay: float = 0.999, seed: int | None = None,
) -> tuple[list[Tensor], Tensor]:  # fmt: skip
    """Examples drawn in proportion to weights, so many a batch on average.

    Args:
        inputs: tensors whose first dimension is that of examples.
        weights: of each example.
        overall_rate: how often an example comes on average.
        scope: of the variable that holds the mean weight so far.
        mean_decay: how slowly that moves.
        seed: of the random numbers.

    Returns:
        A tensor of each of `inputs`, and the rates of the examples that came, by which to divide
        what should not depend on the weights.
    """
    with name_scope(scope, "weighted_resample", inputs) as within:
        with variable_scope(scope, "estimate_mean", inputs):
            estimate = get_local_variable(
                "estimated_mean", initializer=cast(0, weights.dtype), dtype=weights.dtype
            )
            mean = assign_moving_average(estimate, reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        of_each, *found = resample_at_rate([rates, *inputs], rates, scope=within, seed=seed)
        return found, of_each
