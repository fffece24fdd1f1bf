"""How the values of replicas become one."""

from __future__ import annotations

from enum import Enum
from typing import Any

from opdock.graph.variables.flavour import VariableAggregation

__all__ = ["ReduceOp"]


class ReduceOp(Enum):
    """How the values of replicas become one: their sum, or their mean."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """The reduction that a variable's aggregation asks for.

        Raises:
            ValueError: the aggregation is no reduction.
        """
        if aggregation is VariableAggregation.SUM:
            return ReduceOp.SUM
        if aggregation is VariableAggregation.MEAN:
            return ReduceOp.MEAN
        raise ValueError(
            f"Could not convert from `tf.VariableAggregation` {aggregation} to"
            "`tf.distribute.ReduceOp` type"
        )

    @staticmethod
    def of(given: Any) -> Any:
        """The reduction of a name such as "sum"; what is no name is given back."""
        return ReduceOp(given.upper()) if isinstance(given, str) else given
