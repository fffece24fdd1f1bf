"""Datasets with the elements of others: fewer, more, in turn, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import errors
from opdock.kernels.data.base import (
    INFINITE,
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    FollowingIterator,
    HandedOn,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.shapes import Shape

__all__ = [
    "ConcatenateDataset", "DirectedInterleaveDataset", "RepeatDataset", "ShardDataset",
    "SkipDataset", "TakeDataset", "ZipDataset", "common_shape",
]  # fmt: skip


class TakeDataset(HandedOn):
    """At most the first `count` elements; all for a negative count."""

    def __init__(self, source: Dataset, count: int) -> None:
        super().__init__(source)
        self.count = count

    @property
    def kind(self) -> str:
        """What `AssertNextDataset` calls it."""
        return "FiniteTake" if self.count else "EmptyTake"

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        if n == UNKNOWN or self.count < 0:
            return n
        return self.count if n == INFINITE else min(n, self.count)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        if self.count < 0:
            return self.source.iterator(context)
        return _TakeIterator(self.source, context, self.count)


class _TakeIterator(FollowingIterator):
    saved = ("left",)

    def __init__(self, source: Dataset, context: Context, count: int) -> None:
        super().__init__(source, context)
        self.left = count

    def next(self) -> Element | None:
        if self.left <= 0:
            self.source.close()
            return None
        element = self.source.next()
        self.left = 0 if element is None else self.left - 1
        return element


class SkipDataset(HandedOn):
    """What follows the first `count` elements; nothing for a negative count."""

    def __init__(self, source: Dataset, count: int) -> None:
        super().__init__(source)
        self.count = count

    @property
    def kind(self) -> str:
        """What `AssertNextDataset` calls it."""
        return "EmptySkip" if self.count < 0 else "FiniteSkip"

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        if self.count < 0:
            return 0
        n = self.source.cardinality()
        return n if n < 0 else max(0, n - self.count)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _SkipIterator(self.source, context, self.count)


class _SkipIterator(FollowingIterator):
    saved = ("left",)

    def __init__(self, source: Dataset, context: Context, count: int) -> None:
        super().__init__(source, context)
        self.left = count

    def next(self) -> Element | None:
        if self.left < 0:
            return None
        while self.left:
            self.left -= 1
            if self.source.next() is None:
                self.left = -1
                return None
        return self.source.next()


class RepeatDataset(HandedOn):
    """The elements `count` times; without end for a negative count."""

    def __init__(self, source: Dataset, count: int) -> None:
        super().__init__(source)
        self.count = count

    @property
    def kind(self) -> str:
        """What `AssertNextDataset` calls it."""
        return (
            "ForeverRepeat" if self.count < 0 else "FiniteRepeat" if self.count else "EmptyRepeat"
        )

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        if self.count < 0:
            return 0 if n == 0 else INFINITE
        if self.count == 0 or n < 0:
            return 0 if self.count == 0 else n
        return n * self.count

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _RepeatIterator(self, context)


class _RepeatIterator(FollowingIterator):
    saved = ("_turn", "_fruitless")

    def __init__(self, dataset: RepeatDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset
        self._turn = 0
        self._fruitless = True  # whether this turn has given nothing yet

    def next(self) -> Element | None:
        count = self._dataset.count
        while count < 0 or self._turn < count:
            element = self.source.next()
            if element is not None:
                self._fruitless = False
                return element
            if count < 0 and self._fruitless:
                return None  # what is empty stays so
            self.source.close()
            self._turn += 1
            self._fruitless = True
            if count < 0 or self._turn < count:
                self.source = self._dataset.source.iterator(self.context)
        return None

    def columns(self, count: int) -> Element | None:
        times = self._dataset.count
        found = self.source.columns(count) if times < 0 or self._turn < times else None
        if found is not None:
            self._fruitless = False
        return found


class ConcatenateDataset(Dataset):
    """One dataset after the other."""

    def __init__(self, first: Dataset, second: Dataset) -> None:
        if first.types != second.types:
            shown = (
                "[" + ", ".join(t.name for t in d.types) + "]" for d in (first, second)
            )  # fmt: skip
            raise invalid(
                "Deep concatenation is not supported: input dataset and dataset to concatenate "
                f"have different output_types {' and '.join(shown)}"
            )
        merged = [common_shape([a, b]) for a, b in zip(first.shapes, second.shapes, strict=True)]
        super().__init__(first.types, merged)
        self.parts = first, second

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """The datasets that it takes elements of."""
        return self.parts

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of other datasets."""
        return self.labelled(ConcatenateDataset(*sources))

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        a, b = (d.cardinality() for d in self.parts)
        if INFINITE in (a, b):
            return INFINITE
        return UNKNOWN if UNKNOWN in (a, b) else a + b

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ConcatenateIterator(self.parts, context)


class _ConcatenateIterator(DatasetIterator):
    def __init__(self, parts: Sequence[Dataset], context: Context) -> None:
        self._parts, self._context = parts, context
        self._index = 0
        self._current: DatasetIterator | None = parts[0].iterator(context.branch(0))

    def next(self) -> Element | None:
        while self._current is not None:
            element = self._current.next()
            if element is not None:
                return element
            self._go_to(self._index + 1)
        return None

    def _go_to(self, index: int) -> None:
        self.close()
        self._index, self._current = index, None
        if index < len(self._parts):
            self._current = self._parts[index].iterator(self._context.branch(index))

    def save(self) -> State:
        inner = None if self._current is None else self._current.save()
        return {"index": self._index, "current": inner}

    def restore(self, state: State) -> None:
        self._go_to(state["index"])
        if self._current is not None:
            self._current.restore(state["current"])

    def close(self) -> None:
        if self._current is not None:
            self._current.close()


class ZipDataset(Dataset):
    """Elements of several datasets side by side, as long as all have some."""

    def __init__(self, parts: Sequence[Dataset]) -> None:
        super().__init__(
            [t for d in parts for t in d.types], [s for d in parts for s in d.shapes]
        )  # fmt: skip
        self.parts = tuple(parts)

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """The datasets that it takes elements of."""
        return self.parts

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of other datasets."""
        return self.labelled(ZipDataset(sources))

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        sizes = [d.cardinality() for d in self.parts]
        if UNKNOWN in sizes:
            return UNKNOWN
        return min((n for n in sizes if n != INFINITE), default=INFINITE)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ZipIterator([d.iterator(context.branch(i)) for i, d in enumerate(self.parts)])


class _Several(DatasetIterator):
    """An iterator over several others."""

    def __init__(self, parts: Sequence[DatasetIterator]) -> None:
        self.parts = list(parts)

    def save(self) -> State:
        return {"parts": [p.save() for p in self.parts]}

    def restore(self, state: State) -> None:
        for part, inner in zip(self.parts, state["parts"], strict=True):
            part.restore(inner)

    def close(self) -> None:
        for part in self.parts:
            part.close()


class _ZipIterator(_Several):
    _over = False

    def next(self) -> Element | None:
        found: list[Any] = []
        if self._over:
            return None
        error = None
        for part in self.parts:
            # Where one fails, the others step on all the same, so that they stay together.
            try:
                element = part.next()
            except errors.OpError as e:
                error = error or e
                continue
            if element is None:
                if error is None:
                    self._over = True
                    return None
                break
            found += element
        if error is not None:
            raise error
        return tuple(found)

    def save(self) -> State:
        return {**super().save(), "over": self._over}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._over = state["over"]


class DirectedInterleaveDataset(Dataset):
    """Elements of several datasets; another one gives the number of the dataset to take from."""

    def __init__(self, selector: Dataset, parts: Sequence[Dataset]) -> None:
        if any(d.types != parts[0].types for d in parts):
            raise invalid("All inputs must have the same output_dtypes.")
        merged = [common_shape(s) for s in zip(*(d.shapes for d in parts), strict=True)]
        super().__init__(parts[0].types, merged)
        self.selector, self.parts = selector, tuple(parts)

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """The datasets that it takes elements of."""
        return (self.selector, *self.parts)

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of other datasets."""
        return self.labelled(DirectedInterleaveDataset(sources[0], sources[1:]))

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        parts = [self.selector, *self.parts]
        return _DirectedIterator([d.iterator(context.branch(i)) for i, d in enumerate(parts)])


class _DirectedIterator(_Several):
    def __init__(self, parts: Sequence[DatasetIterator]) -> None:
        super().__init__(parts)
        self._over = [False] * len(parts)

    def next(self) -> Element | None:
        while not all(self._over[1:]):
            choice = self.parts[0].next()
            if choice is None:
                return None
            index = int(choice[0])
            if not 0 <= index < len(self.parts) - 1:
                raise invalid(
                    f"Selector index out of range: {index} >= {len(self.parts) - 1}"
                )  # fmt: skip
            if self._over[index + 1]:
                continue
            element = self.parts[index + 1].next()
            if element is not None:
                return element
            self._over[index + 1] = True
        return None

    def save(self) -> State:
        return {**super().save(), "over": [int(o) for o in self._over]}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._over = [bool(o) for o in state["over"]]


class ShardDataset(HandedOn):
    """Every `count`-th element, from number `index` on."""

    def __init__(self, source: Dataset, count: int, index: int, non_empty: bool) -> None:
        super().__init__(source)
        if count <= 0:
            raise invalid(f"Number of shards must be greater than zero (currently {count}).")
        if not 0 <= index < count:
            raise invalid(
                f"Index must be between 0 and {count - 1} (currently index = {index} and "
                f"num_shards = {count})."
            )
        self.count, self.index, self.non_empty = count, index, non_empty

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        return n if n < 0 else n // self.count + (self.index < n % self.count)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ShardIterator(self, context)


class _ShardIterator(FollowingIterator):
    saved = ("_seen",)

    def __init__(self, dataset: ShardDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset
        self._seen = 0

    def next(self) -> Element | None:
        count, index = self._dataset.count, self._dataset.index
        while True:
            element = self.source.next()
            if element is None:
                return None
            self._seen += 1
            if (self._seen - 1) % count == index:
                if self._dataset.non_empty:
                    self._check_others()
                return element

    def _check_others(self) -> None:
        """Checks that every shard has an element, before this one gives its first."""
        count = self._dataset.count
        while self._seen < count:
            if self.source.next() is None:
                raise invalid(
                    "There aren't enough elements in this dataset for each shard to have at least "
                    f"one element (# elems = {self._seen}, # shards = {count})."
                )
            self._seen += 1


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """What several shapes agree on."""
    first = shapes[0]
    if first is None or any(s is None or len(s) != len(first) for s in shapes):
        return None
    known = [s for s in shapes if s is not None]
    return tuple(d[0] if len(set(d)) == 1 else None for d in zip(*known, strict=True))
