"""Where names of TensorFlow's internal modules of datasets are in opdock, as data; see `tables`."""

from __future__ import annotations

from typing import Final

_EXPERIMENTAL: Final = "opdock.data.experimental"
_KIND: Final = "opdock.data.by_kind"

# Internal module -> opdock's modules.
DATA_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.data.experimental.ops.map_defun": (f"{_EXPERIMENTAL}.vectorized",),
    "python.data.experimental.ops.optimization": (
        f"{_EXPERIMENTAL}.sharing",
        f"{_EXPERIMENTAL}.vectorized",
    ),
    "python.data.experimental.ops.readers": (f"{_EXPERIMENTAL}.readers",),
    "python.data.experimental.ops.stats_ops": (f"{_EXPERIMENTAL}.statistics",),
    "python.data.experimental.ops.threadpool": (f"{_EXPERIMENTAL}.sharing",),
    "python.data.ops.dataset_ops": (
        "opdock.data.dataset",
        "opdock.data.dataset_v1",
        "opdock.data.functions",
    ),
    "python.data.ops.iterator_ops": ("opdock.data.iterators",),
    "python.data.ops.multi_device_iterator_ops": ("opdock.data.devices",),
    "python.data.ops.optional_ops": ("opdock.data.optional",),
    "python.data.ops.readers": ("opdock.data.readers",),
}

# Internal module -> name -> "module:name" of opdock.
DATA_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.data.experimental.ops.distribute": {
        "_AutoShardDataset": f"{_EXPERIMENTAL}.sharing:auto_sharded",
        "_AutoShardDatasetV1": f"{_EXPERIMENTAL}.sharing:auto_sharded",
        "_RebatchDataset": f"{_EXPERIMENTAL}.sharing:rebatched",
    },
    "python.data.experimental.ops.interleave_ops": {
        "_DirectedInterleaveDataset": f"{_KIND}:directed_interleave_dataset",
    },
    "python.data.experimental.ops.matching_files": {
        "MatchingFilesDataset": f"{_KIND}:matching_files_dataset",
    },
    "python.data.experimental.ops.optimization": {
        "_ChooseFastestBranchDataset": f"{_EXPERIMENTAL}.vectorized:choose_fastest_branch",
        "_ChooseFastestDataset": f"{_EXPERIMENTAL}.sharing:choose_fastest",
    },
    "python.data.experimental.ops.readers": {
        "CsvDatasetV1": f"{_EXPERIMENTAL}.readers:CsvDataset",
        "SqlDatasetV1": f"{_EXPERIMENTAL}.readers:SqlDataset",
    },
    "python.data.ops.dataset_ops": {
        "MapDataset": f"{_KIND}:map_dataset",
        "ParallelMapDataset": f"{_KIND}:parallel_map_dataset",
        "PrefetchDataset": f"{_KIND}:prefetch_dataset",
        "_GeneratorDataset": f"{_KIND}:generator_dataset",
        "_MaxIntraOpParallelismDataset": f"{_KIND}:max_intra_op_parallelism_dataset",
        "_NestedVariant": "opdock.data.dataset:NestedVariant",
        "_VariantDataset": "opdock.data.dataset:VariantDataset",
    },
    "python.data.ops.optional_ops": {"_OptionalImpl": "opdock.data.optional:OptionalValue"},
    "python.data.ops.readers": {"_TFRecordDataset": f"{_KIND}:tf_record_dataset"},
}

# Names of TF 2's interface in 1.15 that are other than TF 1's of the same name.
DATA_V2: Final[dict[str, str]] = {
    "data.Dataset": "opdock.data.dataset:DatasetV2",
    **{
        f"data.{name}": f"opdock.data.readers:{name}V2"
        for name in ("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset")
    },
}
