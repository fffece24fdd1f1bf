"""Batches shared out among replicas, windows that overlap, and inputs that race."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from opdock import errors, shapes
from opdock.kernels.data.base import (
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    FollowingIterator,
    HandedOn,
    State,
    invalid,
)
from opdock.kernels.data.batching import WindowDataset
from opdock.kernels.data.context import Context
from opdock.kernels.data.rows import stack
from opdock.kernels.data.sequence import common_shape

__all__ = [
    "ChooseFastestDataset", "RebatchDataset", "SlidingWindowDataset", "UnsavedDataset",
]  # fmt: skip


class RebatchDataset(Following):
    """Each batch as so many smaller ones as there are replicas; the last of them may be empty."""

    def __init__(self, source: Dataset, replicas: int, types: Any, shapes_: Any) -> None:
        if replicas <= 0:
            raise invalid("num_replicas must be greater than zero.")
        super().__init__(source, types, shapes_)
        self.replicas = replicas

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        return n if n < 0 else n * self.replicas

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _RebatchIterator(self, context)


class _RebatchIterator(FollowingIterator):
    saved = ("_batch", "_slice")

    def __init__(self, dataset: RebatchDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._replicas = dataset.replicas
        self._batch: Element | None = None
        self._slice = 0

    def next(self) -> Element | None:
        if self._slice == 0:
            self._batch = self.source.next()
        if self._batch is None:
            return None
        found = tuple([self._part(i, component) for i, component in enumerate(self._batch)])
        self._slice = (self._slice + 1) % self._replicas
        return found

    def _part(self, index: int, component: Any) -> Any:
        if not np.ndim(component):
            raise invalid(
                "Cannot rebatch dataset: All components must have at least one dimension. Perhaps "
                f"your input dataset is not batched? Component {index} is scalar."
            )
        size = -(-len(component) // self._replicas)
        return component[self._slice * size : (self._slice + 1) * size]


class SlidingWindowDataset(Following):
    """Stacks of `size` elements that are `stride` apart, each `shift` after the one before."""

    def __init__(
        self, source: Dataset, size: int, shift: int, stride: int, types: Any, shapes_: Any
    ) -> None:
        super().__init__(WindowDataset(source, size, shift, stride, True), types, shapes_)

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _SlidingIterator(self.source, context)


class _SlidingIterator(FollowingIterator):
    def next(self) -> Element | None:
        window = self.source.next()
        if window is None:
            return None
        return tuple([stack(column.elements)[0] for column in window])  # each is a dataset


class UnsavedDataset(HandedOn):
    """The same elements, by iterators whose place cannot be saved."""

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _UnsavedIterator(self.source, context)


class _UnsavedIterator(FollowingIterator):
    def next(self) -> Element | None:
        return self.source.next()

    def save(self) -> State:
        raise errors.UnimplementedError(
            None, None, "NonSerializableDatasetOp::Dataset does not support serialization."
        )


class ChooseFastestDataset(Dataset):
    """The elements of several datasets that have the same, by the one that is the fastest.

    Args:
        parts: the datasets.
        experiments: for how many elements all are asked and timed.
    """

    def __init__(self, parts: Sequence[Dataset], experiments: int) -> None:
        first, *others = parts
        for i, other in enumerate(others, 1):
            _check_alike(first, other, i)
        merged = [common_shape(s) for s in zip(*(d.shapes for d in parts), strict=True)]
        super().__init__(first.types, merged)
        self.parts, self.experiments = tuple(parts), experiments

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """The datasets that it takes elements of."""
        return self.parts

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of other datasets."""
        return self.labelled(ChooseFastestDataset(sources, self.experiments))

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return next((n for d in self.parts if (n := d.cardinality()) != UNKNOWN), UNKNOWN)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _RacingIterator(self, context)


def _check_alike(first: Dataset, other: Dataset, index: int) -> None:
    every = "All inputs to ChooseFastestDataset must have"
    if other.types != first.types:
        shown, wanted = (", ".join(t.name for t in d.types) for d in (other, first))
        raise invalid(
            f"{every} the same output types. Input {index} has output types: {shown}. "
            f"Expected: {wanted}."
        )
    for j, (wanted_shape, shape) in enumerate(zip(first.shapes, other.shapes, strict=True)):
        if not shapes.is_compatible(wanted_shape, shape):
            raise invalid(
                f"{every} compatible output shapes. Component {j} of input {index} has shape: "
                f"{shapes.text(shape)}. Expected to be compatible with shape: "
                f"{shapes.text(wanted_shape)}."
            )
    counts = first.cardinality(), other.cardinality()
    if UNKNOWN not in counts and counts[0] != counts[1]:
        raise invalid(
            f"{every} compatible cardinalities. Input {index} has cardinality: {counts[1]}, while "
            f"all prior inputs have cardinality: {counts[0]}."
        )


class _RacingIterator(DatasetIterator):
    def __init__(self, dataset: ChooseFastestDataset, context: Context) -> None:
        self._parts = [d.iterator(context.branch(i)) for i, d in enumerate(dataset.parts)]
        self._seconds = [0.0] * len(self._parts)
        self._left = dataset.experiments
        self._chosen = 0

    def next(self) -> Element | None:
        if self._left <= 0:
            return self._parts[self._chosen].next()
        found, *_ = [self._timed(i) for i in range(len(self._parts))]
        self._left -= 1
        if self._left == 0:
            self._chosen = self._seconds.index(min(self._seconds))
            for i, part in enumerate(self._parts):
                if i != self._chosen:
                    part.close()
        return found

    def _timed(self, index: int) -> Element | None:
        begin = perf_counter()
        element = self._parts[index].next()
        self._seconds[index] += perf_counter() - begin
        return element

    def save(self) -> State:
        running = self._parts if self._left > 0 else [self._parts[self._chosen]]
        return {"parts": [p.save() for p in running], "left": self._left, "chosen": self._chosen}

    def restore(self, state: State) -> None:
        self._left, self._chosen = state["left"], state["chosen"]
        running = self._parts if self._left > 0 else [self._parts[self._chosen]]
        for part, saved in zip(running, state["parts"], strict=True):
            part.restore(saved)

    def close(self) -> None:
        for part in self._parts:
            part.close()
