"""A variable in one place that several replicas update."""

from __future__ import annotations

from typing import Any

from opdock.distribute.variables import updated
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.flavour import VariableAggregation
from opdock.graph.variables.resource_variable import ResourceVariable

__all__ = ["AggregatingVariable", "make_aggregating"]


class AggregatingVariable(ResourceVariable):
    """A variable to which is assigned what the values of all replicas make together.

    Args:
        strategy: whose it is.
        variable: the variable.
        aggregation: how values become one.
    """

    def __init__(self, strategy: Any, variable: ResourceVariable, aggregation: Any) -> None:
        self.__dict__.update(variable.__dict__)
        self._variable, self._distribute_strategy = variable, strategy
        self._aggregation = aggregation
        variable.__dict__["_aggregating_container"] = self

    def get(self) -> ResourceVariable:
        """The variable itself."""
        return self._variable

    def _copy_on(self, device: Any) -> ResourceVariable:
        return self._variable

    @property
    def distribute_strategy(self) -> Any:
        """The strategy whose variable it is."""
        return self._distribute_strategy

    def value(self) -> Tensor:
        """A read of the value."""
        return self._variable.value()

    def assign(self, *args: Any, **kwargs: Any) -> Any:
        """Assigns what the replicas' values make together."""
        return updated(self, "assign", args, kwargs)

    def assign_add(self, *args: Any, **kwargs: Any) -> Any:
        """Adds what the replicas' values make together."""
        return updated(self, "assign_add", args, kwargs)

    def assign_sub(self, *args: Any, **kwargs: Any) -> Any:
        """Subtracts what the replicas' values make together."""
        return updated(self, "assign_sub", args, kwargs)


def make_aggregating(strategy: Any, make: Any, **kwargs: Any) -> AggregatingVariable:
    """A variable that several replicas update, in the collections that it is to be in.

    Raises:
        ValueError: the aggregation is none.
    """
    aggregation = kwargs.pop("aggregation", VariableAggregation.NONE)
    if not isinstance(aggregation, VariableAggregation):
        raise ValueError(
            f"Invalid variable aggregation mode: {aggregation} for variable: {kwargs['name']}"
        )
    collections = kwargs.pop("collections", None)
    keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
    made = make(collections=[], **kwargs)
    found = AggregatingVariable(strategy, made, aggregation)
    graph = get_default_graph()
    if made.trainable:
        keys.append(GraphKeys.TRAINABLE_VARIABLES)
        known = graph.get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        known[:] = [v for v in known if v is not made]
    graph.add_to_collections(list(dict.fromkeys(keys)), found)
    return found
