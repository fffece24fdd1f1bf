"""Statistics of datasets: what counts them, and the datasets that tell it something."""

from __future__ import annotations

from opdock.ops.registry import Traits, define_op
from opdock.ops.support.common_shapes import scalar
from opdock.ops.support.data import ELEMENTS, dataset_op, under_earlier_names

__all__: list[str] = []

_TAGGED = "input_dataset: variant, tag: string"

stats_aggregator_handle_op = define_op(
    "StatsAggregatorHandle", "-> handle: resource",
    "container: string = '', shared_name: string = ''", stateful=True,
)  # fmt: skip
stats_aggregator_handle_op.declare(Traits(effect=False, merge=False, fold=False))
stats_aggregator_summary_op = define_op(
    "StatsAggregatorSummary", "iterator: resource -> summary: string", stateful=True
)
for _op in (stats_aggregator_handle_op, stats_aggregator_summary_op):
    _op.not_differentiable()
    _op.shape(scalar)

latency_stats_dataset_op = dataset_op("LatencyStatsDataset", _TAGGED)
bytes_produced_stats_dataset_op = dataset_op("BytesProducedStatsDataset", _TAGGED)
set_stats_aggregator_dataset_op = dataset_op(
    "SetStatsAggregatorDataset",
    "input_dataset: variant, stats_aggregator: resource, tag: string, counter_prefix: string",
    ELEMENTS,
)  # fmt: skip

under_earlier_names(
    stats_aggregator_handle_op, stats_aggregator_summary_op, latency_stats_dataset_op,
    bytes_produced_stats_dataset_op, set_stats_aggregator_dataset_op,
)  # fmt: skip
