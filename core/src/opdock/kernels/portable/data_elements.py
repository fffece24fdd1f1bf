"""Kernels that make datasets of the elements of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.kernels.data import batching, choosing, sequence, sharing, shuffling
from opdock.kernels.data.asserting import AssertNextDataset
from opdock.kernels.data.base import Dataset, declared, invalid, scalar_int, unwrap
from opdock.kernels.data.binding import Make, hosted, resources_of, scalar_text, texts, unary
from opdock.kernels.data.caching import FileCacheDataset
from opdock.kernels.data.delaying import SleepDataset
from opdock.kernels.data.memory import dataset_anywhere, dataset_of
from opdock.kernels.data.parallel import (
    LimitedThreadsDataset,
    PrefetchDataset,
    ThreadPool,
)
from opdock.kernels.data.rewriting import RewrittenDataset
from opdock.kernels.data.sharding import auto_sharded
from opdock.kernels.data.sources import seeds_or_fresh
from opdock.kernels.select.signature import NodeSig

__all__: list[str] = []

for _op, _numbers, _make, _source_of in (
    ("TakeDataset", ("count",), sequence.TakeDataset, dataset_anywhere),
    ("SkipDataset", ("count",), sequence.SkipDataset, dataset_anywhere),
    ("RepeatDataset", ("count",), sequence.RepeatDataset, dataset_anywhere),
    ("UnbatchDataset", (), batching.UnbatchDataset, dataset_of),
    ("UniqueDataset", (), choosing.UniqueDataset, dataset_of),
    ("IgnoreErrorsDataset", (), choosing.IgnoreErrorsDataset, dataset_anywhere),
    ("ModelDataset", (), lambda dataset: dataset, dataset_anywhere),
    (
        "MaxIntraOpParallelismDataset", ("max_intra_op_parallelism",), lambda dataset, _: dataset,
        dataset_anywhere,
    ),
    ("PrivateThreadPoolDataset", ("num_threads",), LimitedThreadsDataset, dataset_anywhere),
    ("NonSerializableDataset", (), sharing.UnsavedDataset, dataset_anywhere),
):  # fmt: skip
    _inputs = " ".join(("input_dataset", *_numbers))
    hosted(_op, inputs=_inputs, module=__name__)(unary(_numbers, _make, _source_of))


@hosted("OptimizeDataset", inputs="input_dataset optimizations")
def optimize(sig: NodeSig) -> Make:
    """The elements, after rewrites by TF's names."""
    resources = resources_of(sig)
    return lambda source, names: RewrittenDataset(dataset_anywhere(source), texts(names), resources)


@hosted("AssertNextDataset", inputs="input_dataset transformations")
def assert_next(sig: NodeSig) -> Make:
    """The elements, if what follows is what was expected."""
    return lambda source, names: AssertNextDataset(dataset_anywhere(source), texts(names))


@hosted("ThreadPoolHandle")
def thread_pool_handle(sig: NodeSig) -> Make:
    """A number of threads that datasets may share."""
    attrs, resources = sig.attrs, resources_of(sig)
    name, threads = attrs["shared_name"] or sig.name, int(attrs["num_threads"])
    if threads <= 0:
        raise invalid("`num_threads` must be greater than zero.")
    return lambda: resources.get_or_create(
        "thread_pool", attrs["container"], name, lambda: ThreadPool(threads)
    )


@hosted("ThreadPoolDataset", inputs="input_dataset thread_pool")
def thread_pool(sig: NodeSig) -> Make:
    """The elements, by as many threads as the pool has."""

    def run(source: Any, handle: Any) -> Dataset:
        pool = unwrap(handle)
        if not isinstance(pool, ThreadPool):
            raise invalid(f"The handle is not one of a thread pool: {type(pool).__name__}")
        return LimitedThreadsDataset(dataset_anywhere(source), pool.threads)

    return run


@hosted("SleepDataset", inputs="input_dataset sleep_microseconds")
def sleep(sig: NodeSig) -> Make:
    """The elements, each of which comes later."""
    resources = resources_of(sig)

    def run(source: Any, microseconds: Any) -> Dataset:
        count = scalar_int(microseconds, "sleep_microseconds")
        return SleepDataset(dataset_anywhere(source), max(count, 0) / 1e6, resources)

    return run


@hosted("ChooseFastestDataset", inputs="input_datasets")
def choose_fastest(sig: NodeSig) -> Make:
    """The elements that all inputs have."""
    experiments = int(sig.attrs["num_experiments"])
    return lambda *parts: sharing.ChooseFastestDataset([dataset_of(p) for p in parts], experiments)


@hosted("ZipDataset", inputs="input_datasets")
def zip_(sig: NodeSig) -> Make:
    """Elements side by side."""
    return lambda *parts: sequence.ZipDataset([dataset_of(p) for p in parts])


@hosted("ConcatenateDataset", inputs="input_dataset another_dataset")
def concatenate(sig: NodeSig) -> Make:
    """One dataset after the other."""
    return lambda a, b: sequence.ConcatenateDataset(dataset_of(a), dataset_of(b))


@hosted("DirectedInterleaveDataset", inputs="selector_input_dataset data_input_datasets")
def directed_interleave(sig: NodeSig) -> Make:
    """Elements of the datasets that another one chooses."""
    return lambda selector, *parts: sequence.DirectedInterleaveDataset(
        dataset_of(selector), [dataset_of(p) for p in parts]
    )


@hosted("ShardDataset", inputs="input_dataset num_shards index")
def shard(sig: NodeSig) -> Make:
    """A part of the elements."""
    non_empty = bool(sig.attrs["require_non_empty"])
    return lambda source, count, index: sequence.ShardDataset(
        dataset_of(source), scalar_int(count, "num_shards"), scalar_int(index, "index"), non_empty
    )


@hosted("AutoShardDataset", inputs="input_dataset num_workers index")
def auto_shard(sig: NodeSig) -> Make:
    """A part of the files, or of the elements."""
    return lambda source, count, index: auto_sharded(
        dataset_of(source), scalar_int(count, "num_workers"), scalar_int(index, "index")
    )


@hosted("CacheDataset", inputs="input_dataset filename")
def cache(sig: NodeSig) -> Make:
    """The elements, made once."""

    def run(source: Any, filename: Any) -> Dataset:
        name = scalar_text(filename, "filename")
        dataset = dataset_of(source)
        return FileCacheDataset(dataset, name) if name else choosing.CacheDataset(dataset)

    return run


@hosted("PrefetchDataset", inputs="input_dataset buffer_size")
def prefetch(sig: NodeSig) -> Make:
    """The elements, made ahead."""
    resources = resources_of(sig)
    return lambda source, size: PrefetchDataset(
        dataset_anywhere(source), scalar_int(size, "buffer_size"), resources
    )


@hosted("FilterByLastComponentDataset", inputs="input_dataset", outputs="output")
def filter_by_last_component(sig: NodeSig) -> Make:
    """The elements whose last component says so, without it."""
    types, shapes = declared(sig)
    return lambda source: choosing.FilterByLastDataset(dataset_of(source), types, shapes)


# ---------------------------------------------------------------- random
@hosted("ShuffleDataset", inputs="input_dataset buffer_size seed seed2")
def shuffle(sig: NodeSig) -> Make:
    """The elements in random order."""
    again = bool(sig.attrs["reshuffle_each_iteration"])
    return lambda source, size, a, b: shuffling.ShuffleDataset(
        dataset_of(source), scalar_int(size, "buffer_size"), seeds_or_fresh(a, b), 1, again
    )


@hosted("ShuffleAndRepeatDataset", inputs="input_dataset buffer_size seed seed2 count")
def shuffle_and_repeat(sig: NodeSig) -> Make:
    """The same, several times in one buffer."""
    return lambda source, size, a, b, count: shuffling.ShuffleDataset(
        dataset_of(source), scalar_int(size, "buffer_size"), seeds_or_fresh(a, b),
        scalar_int(count, "count"),
    )  # fmt: skip


@hosted("SamplingDataset", inputs="input_dataset rate seed seed2")
def sampling(sig: NodeSig) -> Make:
    """Some of the elements."""
    return lambda source, rate, a, b: shuffling.SamplingDataset(
        dataset_of(source), float(rate), seeds_or_fresh(a, b)
    )


# ---------------------------------------------------------------- batches
@hosted("BatchDataset", inputs="input_dataset batch_size")
@hosted("BatchDatasetV2", inputs="input_dataset batch_size drop_remainder")
def batch(sig: NodeSig) -> Make:
    """Elements, stacked."""
    types, shapes = declared(sig)
    return lambda source, size, drop=False: batching.BatchDataset(
        dataset_of(source), scalar_int(size, "batch_size"), bool(drop), types, shapes
    )


@hosted("PaddedBatchDataset", inputs="input_dataset batch_size padded_shapes padding_values")
@hosted(
    "PaddedBatchDatasetV2",
    inputs="input_dataset batch_size padded_shapes padding_values drop_remainder",
)
def padded_batch(sig: NodeSig) -> Make:
    """Elements, padded and stacked."""
    types, shapes = declared(sig)
    count = int(sig.attrs["N"])

    def run(source: Any, size: Any, *given: Any) -> Dataset:
        padded, values, drop = given[:count], given[count : 2 * count], given[2 * count :]
        return batching.PaddedBatchDataset(
            dataset_of(source), scalar_int(size, "batch_size"), bool(drop and drop[0]), padded,
            values, types, shapes,
        )  # fmt: skip

    return run


@hosted("DenseToSparseBatchDataset", inputs="input_dataset batch_size row_shape")
def dense_to_sparse_batch(sig: NodeSig) -> Make:
    """Elements of several sizes as sparse tensors."""
    types, shapes = declared(sig)
    return lambda source, size, row: batching.SparseBatchDataset(
        dataset_of(source), scalar_int(size, "batch_size"), np.asarray(row), types, shapes
    )


@hosted("RebatchDataset", inputs="input_dataset num_replicas")
def rebatch(sig: NodeSig) -> Make:
    """Batches, in parts."""
    types, shapes = declared(sig)
    return lambda source, replicas: sharing.RebatchDataset(
        dataset_of(source), scalar_int(replicas, "num_replicas"), types, shapes
    )


@hosted("SlidingWindowDataset", inputs="input_dataset window_size window_shift window_stride")
def sliding_window(sig: NodeSig) -> Make:
    """Elements that follow each other, stacked."""
    types, shapes = declared(sig)
    return lambda source, size, shift, stride: sharing.SlidingWindowDataset(
        dataset_of(source), scalar_int(size, "window_size"), scalar_int(shift, "window_shift"),
        scalar_int(stride, "window_stride"), types, shapes,
    )  # fmt: skip


@hosted("WindowDataset", inputs="input_dataset size shift stride drop_remainder")
def window(sig: NodeSig) -> Make:
    """Datasets of elements that follow each other."""
    return lambda source, size, shift, stride, drop: batching.WindowDataset(
        dataset_of(source), scalar_int(size, "size"), scalar_int(shift, "shift"),
        scalar_int(stride, "stride"), bool(drop),
    )  # fmt: skip
