"""Datasets that choose, order, repeat, keep or stack the elements of others."""

from __future__ import annotations

from opdock.ops.support.data import ELEMENTS, dataset_op, handle_op

__all__: list[str] = []

_IN = "input_dataset: variant"
_PADDED = (
    f"{_IN}, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types"
)  # fmt: skip
_PADDED_ATTRS = (
    "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1, N: int >= 1"
)  # fmt: skip

zip_dataset_op = dataset_op("ZipDataset", "input_datasets: N * variant", f"{ELEMENTS}, N: int >= 1")
concatenate_dataset_op = dataset_op("ConcatenateDataset", f"{_IN}, another_dataset: variant")
repeat_dataset_op = dataset_op("RepeatDataset", f"{_IN}, count: int64")
take_dataset_op = dataset_op("TakeDataset", f"{_IN}, count: int64")
skip_dataset_op = dataset_op("SkipDataset", f"{_IN}, count: int64")
shard_dataset_op = dataset_op(
    "ShardDataset", f"{_IN}, num_shards: int64, index: int64",
    f"require_non_empty: bool = false, {ELEMENTS}",
)  # fmt: skip
cache_dataset_op = dataset_op("CacheDataset", f"{_IN}, filename: string")
prefetch_dataset_op = dataset_op(
    "PrefetchDataset", f"{_IN}, buffer_size: int64",
    f"{ELEMENTS}, slack_period: int = 0, legacy_autotune: bool = true",
)  # fmt: skip
shuffle_dataset_op = dataset_op(
    "ShuffleDataset", f"{_IN}, buffer_size: int64, seed: int64, seed2: int64",
    f"reshuffle_each_iteration: bool = true, {ELEMENTS}",
)  # fmt: skip
shuffle_and_repeat_dataset_op = dataset_op(
    "ShuffleAndRepeatDataset",
    f"{_IN}, buffer_size: int64, seed: int64, seed2: int64, count: int64",
)  # fmt: skip
sampling_dataset_op = dataset_op(
    "SamplingDataset", f"{_IN}, rate: float, seed: int64, seed2: int64"
)
batch_dataset_op = dataset_op("BatchDataset", f"{_IN}, batch_size: int64")
batch_dataset_v2_op = dataset_op(
    "BatchDatasetV2", f"{_IN}, batch_size: int64, drop_remainder: bool",
    f"parallel_copy: bool = false, {ELEMENTS}",
)  # fmt: skip
padded_batch_dataset_op = dataset_op("PaddedBatchDataset", _PADDED, _PADDED_ATTRS)
padded_batch_dataset_v2_op = dataset_op(
    "PaddedBatchDatasetV2", f"{_PADDED}, drop_remainder: bool",
    f"parallel_copy: bool = false, {_PADDED_ATTRS}",
)  # fmt: skip
dense_to_sparse_batch_dataset_op = dataset_op(
    "DenseToSparseBatchDataset", f"{_IN}, batch_size: int64, row_shape: int64"
)
unbatch_dataset_op = dataset_op("UnbatchDataset", _IN)
rebatch_dataset_op = dataset_op(
    "RebatchDataset", f"{_IN}, num_replicas: int64", f"{ELEMENTS}, use_fallback: bool = true"
)
window_dataset_op = dataset_op(
    "WindowDataset", f"{_IN}, size: int64, shift: int64, stride: int64, drop_remainder: bool"
)
auto_shard_dataset_op = dataset_op("AutoShardDataset", f"{_IN}, num_workers: int64, index: int64")
sliding_window_dataset_op = dataset_op(
    "SlidingWindowDataset", f"{_IN}, window_size: int64, window_shift: int64, window_stride: int64"
)
unique_dataset_op = dataset_op("UniqueDataset", _IN)
ignore_errors_dataset_op = dataset_op("IgnoreErrorsDataset", _IN)
directed_interleave_dataset_op = dataset_op(
    "DirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N * variant",
    f"{ELEMENTS}, N: int >= 1",
)  # fmt: skip
choose_fastest_dataset_op = dataset_op(
    "ChooseFastestDataset", "input_datasets: N * variant",
    f"N: int >= 2, num_experiments: int, {ELEMENTS}",
)  # fmt: skip
filter_by_last_component_dataset_op = dataset_op(
    "FilterByLastComponentDataset", _IN, output="output"
)

# These tell TF's runtime how to work; the elements are those of their input.
model_dataset_op = dataset_op(
    "ModelDataset", _IN, f"algorithm: int = 0, cpu_budget: int = 0, {ELEMENTS}"
)
optimize_dataset_op = dataset_op(
    "OptimizeDataset", f"{_IN}, optimizations: string",
    f"{ELEMENTS}, optimization_configs: list(string) = []",
)  # fmt: skip
assert_next_dataset_op = dataset_op("AssertNextDataset", f"{_IN}, transformations: string")
max_intra_op_parallelism_dataset_op = dataset_op(
    "MaxIntraOpParallelismDataset", f"{_IN}, max_intra_op_parallelism: int64"
)
private_thread_pool_dataset_op = dataset_op(
    "PrivateThreadPoolDataset", f"{_IN}, num_threads: int64"
)
thread_pool_handle_op = handle_op(
    "ThreadPoolHandle",
    "num_threads: int, max_intra_op_parallelism: int = 1, display_name: string",
)
thread_pool_dataset_op = dataset_op("ThreadPoolDataset", f"{_IN}, thread_pool: resource")
sleep_dataset_op = dataset_op("SleepDataset", f"{_IN}, sleep_microseconds: int64")
non_serializable_dataset_op = dataset_op("NonSerializableDataset", _IN)
