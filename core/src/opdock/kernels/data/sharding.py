"""A part of a dataset for each worker: of its files where it reads some, or of its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from opdock.kernels.data.base import Dataset, Following, invalid
from opdock.kernels.data.batching import BatchDataset, WindowDataset
from opdock.kernels.data.caching import FileCacheDataset
from opdock.kernels.data.choosing import CacheDataset
from opdock.kernels.data.flattening import FlatMapDataset
from opdock.kernels.data.mapping import FilterDataset, MapDataset
from opdock.kernels.data.parallel import LimitedThreadsDataset, PrefetchDataset
from opdock.kernels.data.parallel_map import ParallelMapDataset
from opdock.kernels.data.rewriting import RewrittenDataset
from opdock.kernels.data.sequence import (
    ConcatenateDataset,
    RepeatDataset,
    ShardDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from opdock.kernels.data.shuffling import ShuffleDataset

__all__ = ["auto_sharded"]

Shard = Callable[[Dataset], Dataset]
_LOOKED_THROUGH: Final = (
    BatchDataset, CacheDataset, FileCacheDataset, FilterDataset,
    LimitedThreadsDataset, MapDataset, ParallelMapDataset, PrefetchDataset, RepeatDataset,
    RewrittenDataset, ShardDataset, ShuffleDataset, SkipDataset, TakeDataset, WindowDataset,
)  # fmt: skip
"""What may stand between files and elements, as in TF."""


def auto_sharded(dataset: Dataset, workers: int, index: int) -> Dataset:
    """The part of a dataset that a worker has.

    Args:
        dataset: that all workers share. Where all of its elements come of files, each worker has
            some of the files, else each has every so manieth element.
        workers: how many there are.
        index: the number of this one.

    Raises:
        InvalidArgumentError: there is no such worker.
    """
    if workers < 1 or not 0 <= index < workers:
        raise invalid(
            f"num_workers must be >= 1 and index in [0, num_workers), currently {workers} and "
            f"{index}"
        )
    if workers == 1:
        return dataset

    def shard(whole: Dataset) -> Dataset:
        return ShardDataset(whole, workers, index, non_empty=True)

    found = _by_files(dataset, shard)
    return shard(dataset) if found is None else found


def _by_files(dataset: Dataset, shard: Shard) -> Dataset | None:
    """The dataset with a part of its files; None where it has none, or something else as well."""
    if isinstance(dataset, ConcatenateDataset | ZipDataset):
        parts = [_by_files(part, shard) for part in dataset.parts]
        known = [part for part in parts if part is not None]
        return dataset.of(known) if len(known) == len(parts) else None
    if isinstance(dataset, FlatMapDataset) and dataset.function.function.reads_files():
        return dataset.over(_shuffled_later(dataset.source, shard))
    if not isinstance(dataset, _LOOKED_THROUGH):
        return None
    inner = _by_files(dataset.source, shard)
    return None if inner is None else dataset.over(inner)


def _shuffled_later(names: Dataset, shard: Shard) -> Dataset:
    """A part of names of files. They are shuffled after that, so that parts are apart."""
    in_order, shuffle = _in_order(names)
    part = shard(in_order)
    return part if shuffle is None else shuffle.over(part)


def _in_order(dataset: Dataset) -> tuple[Dataset, ShuffleDataset | None]:
    """The dataset without what shuffles it, and the first such."""
    if not isinstance(dataset, Following):
        return dataset, None
    inner, first = _in_order(dataset.source)
    if isinstance(dataset, ShuffleDataset) and dataset.count == 1:
        return inner, first or dataset
    return dataset.over(inner), first
