"""`tf.data.experimental`: transformations for `Dataset.apply`, and more kinds of datasets."""

from __future__ import annotations

from opdock.data.dataset import AUTOTUNE
from opdock.data.dataset_v1 import get_structure
from opdock.data.experimental.checkpoints import CheckpointInputPipelineHook
from opdock.data.experimental.grouping import (
    Reducer,
    bucket_by_sequence_length,
    group_by_reducer,
    group_by_window,
)
from opdock.data.experimental.readers import (
    CsvDataset,
    SqlDataset,
    make_batched_features_dataset,
    make_csv_dataset,
    parse_example_dataset,
)
from opdock.data.experimental.sampling import (
    RandomDataset,
    choose_from_datasets,
    rejection_resample,
    sample_from_datasets,
)
from opdock.data.experimental.statistics import bytes_produced_stats, latency_stats
from opdock.data.experimental.transforms import (
    copy_to_device,
    dense_to_sparse_batch,
    enumerate_dataset,
    ignore_errors,
    map_and_batch,
    map_and_batch_with_legacy_function,
    parallel_interleave,
    prefetch_to_device,
    scan,
    shuffle_and_repeat,
    take_while,
    unbatch,
    unique,
)
from opdock.data.experimental.whole import (
    Counter,
    TFRecordWriter,
    cardinality,
    from_variant,
    get_single_element,
    make_saveable_from_iterator,
    to_variant,
)
from opdock.data.iterators import get_next_as_optional
from opdock.data.optional import Optional
from opdock.data.optional import OptionalSpec as OptionalStructure
from opdock.data.options import (
    DistributeOptions,
    MapVectorizationOptions,
    OptimizationOptions,
    StatsOptions,
    ThreadingOptions,
)
from opdock.data.spec import DatasetSpec as DatasetStructure
from opdock.data.statistics import StatsAggregator
from opdock.graph.nodes.compositespec import SparseTensorSpec
from opdock.graph.nodes.typespec import TensorSpec
from opdock.graph.nodes.typespec import TypeSpec as Structure
from opdock.ops.composed.ragged_dispatch import RaggedTensorSpec
from opdock.ops.composed.tensor_array_spec import TensorArraySpec

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def TensorStructure(dtype: object, shape: object) -> TensorSpec:
    """The older name of `tf.TensorSpec(shape, dtype)`."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: object, shape: object) -> SparseTensorSpec:
    """The older name of `tf.SparseTensorSpec(shape, dtype)`."""
    return SparseTensorSpec(shape, dtype)


def RaggedTensorStructure(dtype: object, shape: object, ragged_rank: int) -> RaggedTensorSpec:
    """The older name of `tf.RaggedTensorSpec(shape, dtype, ragged_rank)`."""
    return RaggedTensorSpec(shape, dtype, ragged_rank)


def TensorArrayStructure(
    dtype: object, element_shape: object, dynamic_size: bool, infer_shape: bool
) -> TensorArraySpec:
    """The older name of `tf.TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)`."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "CheckpointInputPipelineHook",
    "Counter",
    "CsvDataset",
    "DatasetStructure",
    "DistributeOptions",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Optional",
    "OptionalStructure",
    "RaggedTensorStructure",
    "RandomDataset",
    "Reducer",
    "SparseTensorStructure",
    "SqlDataset",
    "StatsAggregator",
    "StatsOptions",
    "Structure",
    "TFRecordWriter",
    "TensorArrayStructure",
    "TensorStructure",
    "ThreadingOptions",
    "bucket_by_sequence_length",
    "bytes_produced_stats",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "latency_stats",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]  # fmt: skip
