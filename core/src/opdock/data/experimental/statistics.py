"""Transformations whose elements a `StatsAggregator` hears of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.data.statistics import StatsAggregator
from opdock.data.steps import with_aggregator
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops import data_stats

__all__ = ["bytes_produced_stats", "latency_stats", "set_stats_aggregator"]

Apply = Callable[[Any], Any]


def set_stats_aggregator(
    stats_aggregator: StatsAggregator, prefix: str = "", counter_prefix: str = ""
) -> Apply:
    """The older way to give a dataset its aggregator.

    Args:
        stats_aggregator: counts.
        prefix: what stands before the names of statistics.
        counter_prefix: accepted for TF's signature: counters are for TF's servers.
    """
    return lambda dataset: dataset._follow(
        with_aggregator(dataset, stats_aggregator, prefix, counter_prefix)
    )


def bytes_produced_stats(tag: Any) -> Apply:
    """The same elements; how many bytes each has is counted under a tag."""
    return _measured(data_stats.bytes_produced_stats_dataset_op, tag)


def latency_stats(tag: Any) -> Apply:
    """The same elements; how many microseconds each took is counted under a tag."""
    return _measured(data_stats.latency_stats_dataset_op, tag)


def _measured(op: Any, tag: Any) -> Apply:
    return lambda dataset: dataset._unchanged(
        op, convert_to_tensor(tag, dtype=dtypes.string, name="tag")
    )
