"""Datasets that several functions make of one: which of them is the fastest is tried."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

from opdock.kernels.data.base import (
    INFINITE,
    UNKNOWN,
    Captured,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.flattening import Made, inner_dataset
from opdock.kernels.data.sequence import TakeDataset
from opdock.shapes import Shape

__all__ = ["ChooseFastestBranchDataset"]


class ChooseFastestBranchDataset(Following):
    """What the fastest of several functions makes of a dataset; all make the same.

    Args:
        source: the dataset, which each function walks through once.
        branches: functions from datasets to datasets.
        taken, given: for so many elements of the source there are so many results.
        tried: how many results each function gives until one is chosen.
        types, shapes: of the results.
    """

    def __init__(
        self, source: Dataset, branches: Sequence[Captured], taken: int, given: int, tried: int,
        types: Any, shapes: Sequence[Shape],
    ) -> None:  # fmt: skip
        super().__init__(source, types, shapes)
        for name, ratio in (("ratio_numerator", taken), ("ratio_denominator", given)):
            if ratio <= 0:
                raise invalid(f"`{name}` must be greater than zero.")
        if tried % given:
            raise invalid("`num_elements_per_branch` must be divisible by `ratio_denominator`.")
        self.branches, self.tried = tuple(branches), tried
        self.taken, self.given = taken, given

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        return n if n in (INFINITE, UNKNOWN) else -(-n * self.given // self.taken)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _BranchingIterator(self, context)


class _Rest(Following):
    """What is left of a walk, to be walked through by whoever comes first."""

    def __init__(self, source: Dataset, walk: DatasetIterator) -> None:
        super().__init__(source)
        self._walk, self._begun = walk, False

    def iterator(self, context: Context) -> DatasetIterator:
        """The walk itself.

        Raises:
            InvalidArgumentError: another one has it.
        """
        if self._begun:
            raise invalid(
                "Cannot create more than one WrapperIterator per WrapperDataset. Make sure the "
                "branches to ChooseFastestDataset do not expect the input to repeat."
            )
        self._begun = True
        return _RestIterator(self._walk)


class _RestIterator(DatasetIterator):
    def __init__(self, walk: DatasetIterator) -> None:
        self._walk = walk

    def next(self) -> Element | None:
        return self._walk.next()

    def save(self) -> State:
        return {}  # who has the walk saves it

    def restore(self, state: State) -> None:
        pass

    def close(self) -> None:
        pass  # another branch may go on with it


class _BranchingIterator(DatasetIterator):
    """Has each branch in turn make some results, then the fastest all others."""

    def __init__(self, dataset: ChooseFastestBranchDataset, context: Context) -> None:
        self._dataset, self._inside = dataset, context.inside()
        self._walk = dataset.source.iterator(context)
        self._calls = [f.within(self._inside) for f in dataset.branches]
        self._times: list[list[int]] = [[] for _ in self._calls]
        self._branch = self._count = 0
        self._made: Made | None = None

    @property
    def _trying(self) -> bool:
        return self._branch < len(self._calls)

    def next(self) -> Element | None:
        if self._made is None:
            self._made = self._begin()
        if not self._trying:
            return self._made.iterator.next()
        begin = perf_counter_ns()
        try:
            return self._made.iterator.next()
        finally:
            if self._count:  # the first has to be set up
                self._times[self._branch].append(perf_counter_ns() - begin)
            self._count += 1
            if self._count >= self._dataset.tried:
                self._end()
                self._branch, self._count = self._branch + 1, 0

    def _begin(self) -> Made:
        """The next branch that is to be tried; the fastest if all were."""
        dataset = self._dataset
        index = self._branch if self._trying else self._fastest()
        rest: Dataset = _Rest(dataset.source, self._walk)
        if self._trying:  # what it makes ahead must not be missing from what the next one gets
            rest = TakeDataset(rest, dataset.tried * dataset.taken // dataset.given)
        streams = self._inside.streams()
        results = self._calls[index]((rest,))
        made = inner_dataset(results, dataset.types, dataset.shapes, self._inside)
        context = self._inside.made(made)
        return Made(made.iterator(context), context, streams)

    def _fastest(self) -> int:
        """The branch whose slow results, but for one in ten, took least."""
        times = [sorted(t) for t in self._times]
        slow = [t[len(t) * 9 // 10] if t else 0 for t in times]
        return slow.index(min(slow))

    def _end(self) -> None:
        if self._made is not None:
            self._made.iterator.close()
            self._made = None

    def save(self) -> State:
        made = None if self._made is None else self._made.save()
        return {
            "walk": self._walk.save(), "times": self._times, "branch": self._branch,
            "count": self._count, "made": made,
        }  # fmt: skip

    def restore(self, state: State) -> None:
        self._end()
        self._walk.restore(state["walk"])
        self._times = [list(t) for t in state["times"]]
        self._branch, self._count = state["branch"], state["count"]
        if state["made"] is not None:
            self._inside.resume(state["made"]["streams"])
            self._made = self._begin()
            self._made.restore(state["made"])

    def close(self) -> None:
        self._end()
        self._walk.close()
