"""Shuffled datasets, in TF's order for TF's seeds.

The elements of one walk through the source, an epoch, stand in one slice of the buffer. An element
is drawn from the oldest slice alone, and the first of the slice takes its place: epochs never mix.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from opdock.kernels.data.base import (
    INFINITE,
    UNKNOWN,
    Chosen,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.random import Words

__all__ = ["SamplingDataset", "ShuffleDataset"]

_EPOCHS: Final = 3
"""Slices in the buffer at once: a small source must not fill it with epoch after epoch."""


class ShuffleDataset(Following):
    """Elements in random order.

    Args:
        source: the elements.
        buffer_size: from how many the next one is drawn.
        seeds: of the stream.
        count: how many walks through the source; negative for any number.
        reshuffle: whether each iterator has seeds of its own, drawn from a stream of `seeds`.
    """

    def __init__(
        self, source: Dataset, buffer_size: int, seeds: tuple[int, int], count: int = 1,
        reshuffle: bool = False,
    ) -> None:  # fmt: skip
        if buffer_size <= 0:
            raise invalid("buffer_size must be greater than zero.")
        super().__init__(source)
        self.buffer_size, self.seeds, self.count = buffer_size, seeds, count
        self.reshuffle = reshuffle

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        if self.count < 0 or n == INFINITE:
            return INFINITE
        return UNKNOWN if n == UNKNOWN else n * self.count

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ShuffleIterator(self, context)


class _ShuffleIterator(DatasetIterator):
    def __init__(self, dataset: ShuffleDataset, context: Context) -> None:
        self._dataset, self._context = dataset, context
        seeds = dataset.seeds
        if dataset.reshuffle:
            generator = context.keep(dataset, lambda: Words(*dataset.seeds))
            seeds = generator.next(), generator.next()
        self._words = Words(*seeds)
        self._source: DatasetIterator | None = None
        self._epoch = 0
        self._begun = False
        self._buffer: dict[int, Element] = {}
        self._slices: deque[list[int]] = deque([[0, 0]])

    def next(self) -> Element | None:
        self._fill()
        if not self._buffer:
            return None
        slices, buffer = self._slices, self._buffer
        while slices[0][0] == slices[0][1]:
            slices.popleft()
        begin, end = slices[0]
        index = begin + self._words.next() % (end - begin)
        element = buffer[index]
        first = buffer.pop(begin)
        if index != begin:
            buffer[index] = first
        slices[0][0] = begin + 1
        return element

    def _fill(self) -> None:
        first = not self._begun
        if first:
            self._begun = True
            self._source = self._dataset.source.iterator(self._context)
        while self._source is not None and len(self._buffer) < self._dataset.buffer_size:
            element = self._following(first)
            if element is None:
                self._source = None
                return
            last = self._slices[-1]
            self._buffer[last[1]] = element
            last[1] += 1
            first = False
            if len(self._slices) > _EPOCHS:
                return

    def _following(self, first: bool) -> Element | None:
        count = self._dataset.count
        while count < 0 or self._epoch < count:
            assert self._source is not None
            element = self._source.next()
            if element is not None:
                return element
            self._source.close()
            if first and count < 0:
                return None  # what is empty stays so
            self._epoch += 1
            end = self._slices[-1][1]
            self._slices.append([end, end])
            self._source = self._dataset.source.iterator(self._context)
        return None

    def save(self) -> State:
        indices = [i for begin, end in self._slices for i in range(begin, end)]
        return {
            "words": self._words.save(),
            "source": None if self._source is None else self._source.save(),
            "epoch": self._epoch, "begun": int(self._begun),
            "slices": [list(s) for s in self._slices],
            "buffer": [self._buffer[i] for i in indices],
        }  # fmt: skip

    def restore(self, state: State) -> None:
        self._words.restore(state["words"])
        self._epoch, self._begun = state["epoch"], bool(state["begun"])
        self._slices = deque([list(s) for s in state["slices"]])
        indices = [i for begin, end in self._slices for i in range(begin, end)]
        self._buffer = dict(zip(indices, state["buffer"], strict=True))
        self._source = None
        if state["source"] is not None:
            self._source = self._dataset.source.iterator(self._context)
            self._source.restore(state["source"])

    def close(self) -> None:
        if self._source is not None:
            self._source.close()


class SamplingDataset(Chosen):
    """Each element with a probability."""

    def __init__(self, source: Dataset, rate: float, seeds: tuple[int, int]) -> None:
        super().__init__(source)
        self.rate, self.seeds = rate, seeds

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _SamplingIterator(self, context)


class _SamplingIterator(DatasetIterator):
    def __init__(self, dataset: SamplingDataset, context: Context) -> None:
        generator = context.keep(dataset, lambda: Words(*dataset.seeds))
        self._words = Words(generator.next(), generator.next())
        self._source = dataset.source.iterator(context)
        self._rate = dataset.rate

    def next(self) -> Element | None:
        while True:
            element = self._source.next()
            # TF makes a float of [0, 1) from 23 bits of a word.
            if element is None or (self._words.next() & 0x7FFFFF) / (1 << 23) < self._rate:
                return element

    def save(self) -> State:
        return {"words": self._words.save(), "source": self._source.save()}

    def restore(self, state: State) -> None:
        self._words.restore(state["words"])
        self._source.restore(state["source"])

    def close(self) -> None:
        self._source.close()
