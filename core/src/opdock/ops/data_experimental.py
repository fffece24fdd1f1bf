"""The names that ops of datasets had before TensorFlow 1.15, with "Experimental" in front."""

from __future__ import annotations

from typing import Final

from opdock.ops import data_elements, data_functions, data_sources, data_stats
from opdock.ops.registry import get
from opdock.ops.support.standing import older_name

__all__: list[str] = []

# Those have to be there first.
FAMILIES = (data_elements, data_functions, data_sources, data_stats)

NAMES: Final = (
    "AssertNextDataset", "AutoShardDataset", "BytesProducedStatsDataset", "CSVDataset",
    "ChooseFastestDataset", "DatasetCardinality", "DatasetToTFRecord",
    "DenseToSparseBatchDataset", "DirectedInterleaveDataset", "GroupByReducerDataset",
    "GroupByWindowDataset", "IgnoreErrorsDataset", "LMDBDataset", "LatencyStatsDataset",
    "MapAndBatchDataset", "MapDataset", "MatchingFilesDataset", "MaxIntraOpParallelismDataset",
    "NonSerializableDataset", "ParallelInterleaveDataset", "ParseExampleDataset",
    "PrivateThreadPoolDataset", "RandomDataset", "RebatchDataset", "ScanDataset",
    "SetStatsAggregatorDataset", "SleepDataset", "SlidingWindowDataset", "SqlDataset",
    "StatsAggregatorHandle", "StatsAggregatorSummary", "TakeWhileDataset", "ThreadPoolDataset",
    "ThreadPoolHandle", "UnbatchDataset", "UniqueDataset",
)  # fmt: skip

for _name in NAMES:
    older_name(f"Experimental{_name}", get(_name)).not_differentiable()
