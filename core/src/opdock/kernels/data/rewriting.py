"""Rewrites of datasets by TF's names: the same elements in fewer steps, or in more at once.

A dataset is a value with its sources, so a rewrite is a function from a dataset, whose sources are
rewritten, to the one in its place, or to None. Elements stay as they are. What a function makes of
an element is rewritten when it is made.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Final

from opdock import dtypes, errors
from opdock.kernels.data.base import Call, Captured, Chained, Dataset, Element, HandedOn
from opdock.kernels.data.batching import BatchDataset
from opdock.kernels.data.context import Context
from opdock.kernels.data.interleaving import ParallelInterleaveDataset
from opdock.kernels.data.mapping import FilterDataset, MapDataset, checked_predicate
from opdock.kernels.data.parallel import AUTOTUNE, PrefetchDataset, parallelism
from opdock.kernels.data.parallel_map import ParallelMapDataset
from opdock.kernels.data.rows import elements_of, stack
from opdock.kernels.data.sequence import RepeatDataset, SkipDataset, TakeDataset
from opdock.kernels.data.sharing import UnsavedDataset
from opdock.kernels.data.shuffling import ShuffleDataset
from opdock.kernels.data.statistics import MeasuredDataset, latency
from opdock.kernels.select.cells import Resources
from opdock.shapes import is_fully_defined

__all__ = ["RewrittenDataset", "rewritten"]

Rewrite = Callable[[Dataset, Resources], Dataset | None]


def _without_effect(dataset: Dataset, resources: Resources) -> Dataset | None:
    """What hands on all elements is its source."""
    match dataset:
        case TakeDataset(count=n) if n < 0:
            return dataset.source
        case SkipDataset(count=0) | RepeatDataset(count=1) | PrefetchDataset(size=0):
            return dataset.source
    return None


def _maps(dataset: Dataset, resources: Resources) -> Dataset | None:
    """Two maps are one of both functions."""
    if not isinstance(dataset, MapDataset) or not isinstance(dataset.source, MapDataset):
        return None
    first = dataset.source
    if first.keeps_count != dataset.keeps_count:
        return None
    both = Chained(first.function, dataset.function)
    made = MapDataset(first.source, both, dataset.keeps_count, dataset.types, dataset.shapes)
    return dataset.labelled(made)


class _Both(Chained):
    """Whether two predicates hold; the second is not asked where the first does not."""

    def within(self, context: Context, last: bool = False) -> Call:
        first, second = self.first.within(context, last), self.second.within(context, last)

        def of(element: Element, places: Element = ()) -> Element:
            results = first(element)
            return second(element) if checked_predicate(results) else results

        return of


def _filters(dataset: Dataset, resources: Resources) -> Dataset | None:
    """Two filters are one."""
    if not isinstance(dataset, FilterDataset) or not isinstance(dataset.source, FilterDataset):
        return None
    first = dataset.source
    made = FilterDataset(first.source, _Both(first.predicate, dataset.predicate))
    return dataset.labelled(made)


class _Judged(Chained):
    """What a function makes of an element, and behind it what a predicate says of that."""

    def within(self, context: Context, last: bool = False) -> Call:
        first, second = self.first.within(context, last), self.second.within(context, last)

        def of(element: Element, places: Element = ()) -> Element:
            results = first(element)
            return (*results, *second(results))

        return of


class _Part(Captured):
    """Some components of an element, without a call.

    Args:
        beside: what made the element.
        which: the components.
    """

    stateful, has_rows = False, True

    def __init__(self, beside: Captured, which: slice) -> None:
        super().__init__(beside.function, ())
        self._which = which

    def within(self, context: Context, last: bool = False) -> Call:
        return lambda element, places=(): element[self._which]

    def by_rows(self, context: Context) -> Callable[[Element], Element]:
        return lambda columns: columns[self._which]


def _map_and_filter(dataset: Dataset, resources: Resources) -> Dataset | None:
    """A map asks the predicate as well, a filter looks at what it said, a map leaves that out."""
    if not isinstance(dataset, FilterDataset) or dataset.predicate.captured:
        return None
    mapped = dataset.source
    if not isinstance(mapped, MapDataset | ParallelMapDataset):
        return None
    judged = copy.copy(mapped)
    judged.function = _Judged(mapped.function, dataset.predicate)
    judged.types, judged.shapes = (*mapped.types, dtypes.bool), (*mapped.shapes, ())
    chosen = dataset.over(judged)
    chosen.types, chosen.shapes = judged.types, judged.shapes
    chosen.predicate = _Part(judged.function, slice(-1, None))
    without = _Part(judged.function, slice(-1))
    made = MapDataset(chosen, without, mapped.keeps_count, mapped.types, mapped.shapes)
    return _in_place(made, dataset, "MapDataset")


def _in_place(made: Dataset, dataset: Dataset, op: str) -> Dataset:
    """A dataset that has the place of another one, as if an op of another type had made it."""
    dataset.labelled(made)
    made.label = f"{op}/{dataset.label.partition('/')[2]}"
    return made


def _map_and_batch(dataset: Dataset, resources: Resources) -> Dataset | None:
    """A batch of what a map makes, of which an error takes the whole."""
    if type(dataset) is not BatchDataset:
        return None
    if not isinstance(dataset.source, MapDataset | ParallelMapDataset):
        return None
    made = dataset.over(dataset.source)
    made.whole = True
    return _in_place(made, dataset, "MapAndBatchDataset")


class _ByRows(Captured):
    """A function of batches: that of each element, of all at once."""

    def __init__(self, one: Captured) -> None:
        super().__init__(one.function, one.captured)
        self._one = one

    def within(self, context: Context, last: bool = False) -> Call:
        one, many = self._one.within(context, last), self._one.by_rows(context)

        def of(batch: Element, places: Element = ()) -> Element:
            if many is not None:
                try:
                    return many(batch)
                except errors.CancelledError:
                    raise
                except errors.OpError:
                    pass  # whose fault it is shows when elements are called one by one
            return stack([one(element) for element in elements_of(batch)])

        return of

    def by_rows(self, context: Context) -> None:
        return None


def _batches_first(dataset: Dataset, resources: Resources) -> Dataset | None:
    """A map of batches in the place of a batch of what a map makes."""
    if type(dataset) is not BatchDataset or type(dataset.source) is not MapDataset:
        return None
    mapped = dataset.source
    alike = all(is_fully_defined(s) for s in mapped.source.shapes)
    if not alike or not mapped.function.has_rows:
        return None
    size = dataset.size if dataset.drop else None
    batched = [None if s is None else (size, *s) for s in mapped.source.shapes]
    batch = BatchDataset(
        mapped.source, dataset.size, dataset.drop, mapped.source.types, batched
    )  # fmt: skip
    made = MapDataset(
        _in_place(batch, mapped, "BatchDatasetV2"), _ByRows(mapped.function), mapped.keeps_count,
        dataset.types, dataset.shapes,
    )  # fmt: skip
    return _in_place(made, dataset, "MapDataset")


def _shuffle_and_repeat(dataset: Dataset, resources: Resources) -> Dataset | None:
    """Epochs that are shuffled in one buffer, which has them in another order."""
    if not isinstance(dataset, RepeatDataset) or not isinstance(dataset.source, ShuffleDataset):
        return None
    first = dataset.source
    if not first.reshuffle or first.count != 1:
        return None
    made = ShuffleDataset(first.source, first.buffer_size, first.seeds, dataset.count)
    return _in_place(made, dataset, "ShuffleAndRepeatDataset")


def _parallel(dataset: Dataset, resources: Resources) -> Dataset | None:
    """Several calls at once of a function without state."""
    if type(dataset) is not MapDataset or dataset.function.stateful:
        return None
    made = ParallelMapDataset(
        dataset.source, dataset.function, parallelism(AUTOTUNE), True, dataset.keeps_count,
        dataset.types, dataset.shapes, resources,
    )  # fmt: skip
    return _in_place(made, dataset, "ParallelMapDataset")


def _ahead(dataset: Dataset, resources: Resources) -> Dataset | None:
    """What has threads works ahead of whoever asks for its elements."""
    batch_of_map = isinstance(dataset, BatchDataset) and dataset.whole
    if not batch_of_map and not isinstance(dataset, ParallelMapDataset | ParallelInterleaveDataset):
        return None
    return _in_place(PrefetchDataset(dataset, AUTOTUNE, resources), dataset, "PrefetchDataset")


def _measured(dataset: Dataset, resources: Resources) -> Dataset | None:
    """How long each element takes is told."""
    made = MeasuredDataset(dataset, f"record_latency::{dataset.label}", latency)
    return _in_place(made, dataset, "LatencyStatsDataset")


_REWRITES: Final[dict[str, Rewrite]] = {
    "noop_elimination": _without_effect,
    "shuffle_and_repeat_fusion": _shuffle_and_repeat,
    "map_fusion": _maps,
    "filter_fusion": _filters,
    "map_and_filter_fusion": _map_and_filter,
    "map_parallelization": _parallel,
    "map_vectorization": _batches_first,
    "map_and_batch_fusion": _map_and_batch,
    "latency_all_edges": _measured,
    "inject_prefetch": _ahead,
}
"""In the order in which a whole pipeline goes through them."""


def rewritten(dataset: Dataset, names: Iterable[str], resources: Resources) -> Dataset:
    """A dataset after some rewrites.

    Args:
        dataset: which.
        names: TF's names of the rewrites; those that are not known here change nothing.
        resources: where threads come from.
    """
    wanted = set(names)
    passes = [_Pass(rewrite, resources) for name, rewrite in _REWRITES.items() if name in wanted]
    return functools.reduce(lambda found, rewrite: rewrite(found), passes, dataset)


class _Pass:
    """One rewrite, through a pipeline from its beginnings; what is shared in it stays so."""

    def __init__(self, rewrite: Rewrite, resources: Resources) -> None:
        self._rewrite, self._resources = rewrite, resources
        self._done: dict[int, Dataset] = {}

    def __call__(self, dataset: Dataset) -> Dataset:
        found = self._done.get(id(dataset))
        if found is None:
            found = self._done[id(dataset)] = self._of(dataset)
        return found

    def _of(self, dataset: Dataset) -> Dataset:
        if isinstance(dataset, UnsavedDataset):
            return dataset  # TF has no graph of what comes before
        sources = [self(source) for source in dataset.sources]
        if any(a is not b for a, b in zip(sources, dataset.sources, strict=True)):
            dataset = dataset.of(sources)
        return self._rewrite(dataset, self._resources) or dataset


class RewrittenDataset(HandedOn):
    """The elements of a dataset after rewrites, through which goes what its functions make as well.

    Args:
        source: the dataset.
        names: TF's names of the rewrites.
        resources: where threads come from.
    """

    def __init__(self, source: Dataset, names: Iterable[str], resources: Resources) -> None:
        self._names, self._resources = frozenset(names), resources
        super().__init__(self._rewritten(source))

    def _rewritten(self, dataset: Dataset) -> Dataset:
        return rewritten(dataset, self._names, self._resources)

    def within(self, context: Context) -> Context:
        """A context in which datasets that functions make are rewritten."""
        inner = context.with_rewrites(self._rewritten)
        return inner.in_any_order() if "make_sloppy" in self._names else inner
