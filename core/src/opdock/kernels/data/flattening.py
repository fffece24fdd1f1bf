"""Datasets of the elements of datasets that a function makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opdock.dtypes import DType
from opdock.kernels.data.base import (
    Captured,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    FollowingIterator,
    State,
    check_fits,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.memory import dataset_of
from opdock.shapes import Shape

__all__ = [
    "FlatMapDataset", "InterleaveDataset", "InterleavingIterator", "Made", "inner_dataset",
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A walk through a dataset that a function made.

    Attributes:
        iterator: over it.
        context: of the iterator.
        streams: where the random streams of the function stood before it was called.
    """

    iterator: DatasetIterator
    context: Context
    streams: State

    def save(self) -> State:
        """Where it stands, and what it takes to have the function make the same dataset again."""
        return {**self.context.save(self.iterator), "streams": self.streams}

    def restore(self, state: State) -> None:
        """Goes to where another walk through an equal dataset stood."""
        self.context.restore(self.iterator, state)


def inner_dataset(
    results: Element, types: Sequence[DType], shapes: Sequence[Shape], context: Context
) -> Dataset:
    """The dataset that a function returned, as it is walked through in a context.

    Raises:
        InvalidArgumentError: it returned something else, or elements of another kind.
    """
    if len(results) != 1:
        raise invalid("Function must return a single scalar of dtype DT_VARIANT.")
    dataset = dataset_of(results[0])
    check_fits(types, shapes, dataset.types, dataset.shapes)
    return dataset if context.rewrite is None else context.rewrite(dataset)


class FlatMapDataset(Following):
    """The elements of the datasets that a function makes, one dataset after the other."""

    def __init__(
        self, source: Dataset, function: Captured, types: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        super().__init__(source, types, shapes)
        self.function = function

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return InterleavingIterator(self, context, 1, 1)


class InterleaveDataset(FlatMapDataset):
    """The elements of the datasets that a function makes: `block` of each of `cycle` in turn."""

    def __init__(
        self, source: Dataset, function: Captured, cycle: int, block: int, types: Any, shapes: Any
    ) -> None:
        super().__init__(source, function, types, shapes)
        if cycle <= 0:
            raise invalid("cycle_length must be greater than zero.")
        if block <= 0:
            raise invalid("block_length must be greater than zero.")
        self.cycle, self.block = cycle, block

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return InterleavingIterator(self, context, self.cycle, self.block)


@dataclass(frozen=True)
class _Open:
    """One of a cycle.

    Attributes:
        argument: of the function.
        made: what it made.
        number: how many came before.
    """

    argument: Element
    made: Made
    number: int

    def save(self) -> State:
        return {**self.made.save(), "argument": self.argument, "number": self.number}


class InterleavingIterator(FollowingIterator):
    """Goes round a cycle of open datasets.

    Attributes:
        inside: the context of the function that makes them.
    """

    def __init__(self, dataset: FlatMapDataset, context: Context, cycle: int, block: int) -> None:
        super().__init__(dataset.source, context)
        self.inside = context.inside()
        self._dataset = dataset
        self._call = dataset.function.within(self.inside)
        self._open: list[_Open | None] = [None] * cycle
        self._opened = 0  # so far
        self._place = self._taken = 0
        self._count = 0
        self._over = False
        self._block = block

    def next(self) -> Element | None:
        """The next element; None at the end."""
        while not self._over or self._count:
            current = self._open[self._place]
            if current is not None:
                iterator = current.made.iterator
                element = iterator.next()
                if element is not None:
                    self._count_one()
                    return element
                iterator.close()
                self._open[self._place] = None
                self._count -= 1
                self._advance()
            elif not self._over:
                argument = self.source.next()
                if argument is None:
                    self._over = True
                else:
                    self._put(self._place, argument, self._make(argument))
            else:
                self._advance()
        return None

    def columns(self, count: int) -> Element | None:
        """The next elements at once, where one dataset is open."""
        current = self._open[0] if len(self._open) == 1 else None
        return None if current is None else current.made.iterator.columns(count)

    def _count_one(self) -> None:
        self._taken += 1
        if self._taken == self._block:
            self._advance()

    def _advance(self) -> None:
        self._taken = 0
        self._place = (self._place + 1) % len(self._open)

    def _put(self, place: int, argument: Element, made: Made) -> None:
        self._open[place] = _Open(argument, made, self._opened)
        self._opened += 1
        self._count += 1

    def _make(self, argument: Element) -> Made:
        d, streams = self._dataset, self.inside.streams()
        dataset = inner_dataset(self._call(argument), d.types, d.shapes, self.inside)
        context = self.inside.made(dataset)
        return Made(self._walk(dataset, context), context, streams)

    def _walk(self, dataset: Dataset, context: Context) -> DatasetIterator:
        """The iterator over a dataset of the cycle."""
        return dataset.iterator(context)

    def save(self) -> State:
        """Where it stands."""
        cells = [None if o is None else o.save() for o in self._open]
        return {
            **super().save(), "open": cells, "place": self._place, "taken": self._taken,
            "over": int(self._over),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Goes to where another iterator stood."""
        super().restore(state)
        self._place, self._taken = state["place"], state["taken"]
        self._over = bool(state["over"])
        self._open, self._count = [None] * len(self._open), 0
        cells = [(i, cell) for i, cell in enumerate(state["open"]) if cell is not None]
        # Their functions draw random numbers again, in the order in which they did before.
        for i, cell in sorted(cells, key=lambda c: c[1]["number"]):
            self.inside.resume(cell["streams"])
            made = self._made_again(cell["argument"], cell)
            made.restore(cell)
            self._put(i, cell["argument"], made)

    def _made_again(self, argument: Element, cell: State) -> Made:
        """What is to be restored of a cell."""
        return self._make(argument)

    def close(self) -> None:
        """Lets go of threads and files."""
        super().close()
        for current in self._open:
            if current is not None:
                current.made.iterator.close()
