"""Statistics of datasets: what counts them, and the datasets that tell it something."""

from __future__ import annotations

from opdock.ops.registry import define_op
from opdock.ops.support.common_shapes import scalar
from opdock.ops.support.data import ELEMENTS, dataset_op, handle_op

__all__: list[str] = []

_TAGGED = "input_dataset: variant, tag: string"

stats_aggregator_handle_op = handle_op("StatsAggregatorHandle")
stats_aggregator_summary_op = define_op(
    "StatsAggregatorSummary", "iterator: resource -> summary: string", stateful=True
).not_differentiable()
stats_aggregator_summary_op.shape(scalar)

latency_stats_dataset_op = dataset_op("LatencyStatsDataset", _TAGGED)
bytes_produced_stats_dataset_op = dataset_op("BytesProducedStatsDataset", _TAGGED)
set_stats_aggregator_dataset_op = dataset_op(
    "SetStatsAggregatorDataset",
    "input_dataset: variant, stats_aggregator: resource, tag: string, counter_prefix: string",
    ELEMENTS,
)  # fmt: skip
