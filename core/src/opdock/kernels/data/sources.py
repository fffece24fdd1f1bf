"""Datasets that begin with tensors: their elements, their slices, and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.kernels.data.base import (
    INFINITE,
    Captured,
    Dataset,
    DatasetIterator,
    Element,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.random import Words
from opdock.shapes import Shape
from opdock.util import entropy

__all__ = [
    "GeneratorDataset", "RandomDataset", "RangeDataset", "SparseSliceDataset", "TensorDataset",
    "TensorSliceDataset", "seeds_or_fresh",
]  # fmt: skip

Array = np.ndarray[Any, Any]
_MASK: Final = (1 << 64) - 1


class Indexed(Dataset):
    """A dataset whose elements can be had by number."""

    def at(self, index: int) -> Element:
        """The element of a number below the cardinality."""
        raise NotImplementedError

    def between(self, begin: int, end: int) -> Element | None:
        """The elements of these numbers as new columns; None where they do not make any."""
        return None

    def iterator(self, context: Context) -> DatasetIterator:
        return _IndexedIterator(self)


class _IndexedIterator(DatasetIterator):
    def __init__(self, dataset: Indexed) -> None:
        self._at, self._between = dataset.at, dataset.between
        self._count = dataset.cardinality()
        self._next = 0

    def next(self) -> Element | None:
        index = self._next
        if index >= self._count:
            return None
        self._next = index + 1
        return self._at(index)

    def columns(self, count: int) -> Element | None:
        end = min(self._next + count, self._count)
        found = self._between(self._next, end) if end > self._next else None
        if found is not None:
            self._next = end
        return found

    def save(self) -> State:
        return {"next": self._next}

    def restore(self, state: State) -> None:
        self._next = state["next"]


class TensorDataset(Indexed):
    """One element."""

    def __init__(
        self, components: Element, types: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        super().__init__(types, shapes)
        self._components = components

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return 1

    def at(self, index: int) -> Element:
        """The element of that number."""
        return self._components


class TensorSliceDataset(Indexed):
    """The slices of tensors along their first dimension."""

    def __init__(
        self, components: Sequence[Array], types: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        super().__init__(types, shapes)
        if any(c.ndim == 0 for c in components):
            raise invalid("All components must be at least 1-dimensional")
        self._components = tuple(components)
        self._count = len(components[0])
        if any(len(c) != self._count for c in components):
            sizes = ", ".join(str(len(c)) for c in components)
            raise invalid(f"All components must have the same size in the 0th dimension: {sizes}")

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self._count

    def at(self, index: int) -> Element:
        """The element of that number."""
        return tuple([c[index, ...] for c in self._components])

    def between(self, begin: int, end: int) -> Element | None:
        """The elements of these numbers."""
        return tuple([c[begin:end].copy() for c in self._components])


class SparseSliceDataset(Indexed):
    """The rows of a sparse tensor: indices, values and shape of each.

    Raises:
        InvalidArgumentError: the parts do not fit, or the rows are not in order.
    """

    def __init__(self, indices: Array, values: Array, dense_shape: Array, dtype: DType) -> None:
        rank = len(dense_shape)
        super().__init__(
            [dtypes.int64, dtype, dtypes.int64], [(None, rank - 1), (None,), (rank - 1,)]
        )
        if indices.ndim != 2 or values.ndim != 1 or len(indices) != len(values):
            raise invalid(
                "Number of values must match first dimension of indices. Got "
                f"{values.shape} values, indices shape: {list(indices.shape)}"
            )
        if indices.shape[1] != rank:
            raise invalid(
                f"Number of dimensions must match second dimension of indices. Got {rank} "
                f"dimensions, indices shape: {list(indices.shape)}"
            )
        if rank < 1:
            raise invalid("The shape argument requires at least one element.")
        rows = indices[:, 0]
        if len(rows) and (np.any(np.diff(rows) < 0) or rows[0] < 0 or rows[-1] >= dense_shape[0]):
            raise errors.UnimplementedError(
                None, None,
                "The SparseTensor must be ordered in the batch dimension; handling arbitrarily "
                "ordered input is not currently supported.",
            )  # fmt: skip
        self.parts = indices, values, dense_shape
        self.starts = np.searchsorted(rows, np.arange(int(dense_shape[0]) + 1))

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return int(self.parts[2][0])

    def at(self, index: int) -> Element:
        """A row."""
        indices, values, dense_shape = self.parts
        begin, end = self.starts[index], self.starts[index + 1]
        return indices[begin:end, 1:], values[begin:end], dense_shape[1:]


class RangeDataset(Indexed):
    """Integers from a start to before a stop."""

    def __init__(self, start: int, stop: int, step: int, types: Any, shapes: Any) -> None:
        super().__init__(types, shapes)
        if step == 0:
            raise invalid("step must be a non-zero integer.")
        self._range = range(start, stop, step)

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return len(self._range)

    def at(self, index: int) -> Element:
        """The element of that number."""
        return (np.array(self._range[index], np.int64),)

    def between(self, begin: int, end: int) -> Element | None:
        """The elements of these numbers."""
        return (np.array(self._range[begin:end], np.int64),)


def seeds_or_fresh(seed: Any, seed2: Any) -> tuple[int, int]:
    """A pair of seeds; two zeros ask for random ones."""
    pair = int(seed) & _MASK, int(seed2) & _MASK
    if pair == (0, 0):
        return entropy.two_words()
    return pair


class RandomDataset(Dataset):
    """Random words without end."""

    def __init__(self, seed: int, seed2: int, types: Any, shapes: Any) -> None:
        super().__init__(types, shapes)
        self.seeds = seed, seed2

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return INFINITE

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _RandomIterator(self.seeds)


class _RandomIterator(DatasetIterator):
    def __init__(self, seeds: tuple[int, int]) -> None:
        self._words = Words(*seeds)

    def next(self) -> Element:
        return (np.array(self._words.next(), np.int64),)

    def save(self) -> State:
        return self._words.save()

    def restore(self, state: State) -> None:
        self._words.restore(state)


class GeneratorDataset(Dataset):
    """What a function gives, from the state that another one makes, until it has no more."""

    def __init__(
        self, begin: Captured, step: Captured, end: Captured, types: Any, shapes: Any
    ) -> None:
        super().__init__(types, shapes)
        self.functions = begin, step, end

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _GeneratorIterator(self, context)


class _GeneratorIterator(DatasetIterator):
    def __init__(self, dataset: GeneratorDataset, context: Context) -> None:
        begin, step, end = dataset.functions
        self._begin, self._step = begin.within(context), step.within(context)
        self._end = end.within(context, last=True)
        self._state: Element | None = None
        self._over = False

    def next(self) -> Element | None:
        if self._over:
            return None
        if self._state is None:
            self._state = self._begin(())
        try:
            return self._step(self._state)
        except errors.OutOfRangeError:
            self.close()
            return None

    def close(self) -> None:
        if not self._over and self._state is not None:
            self._over = True
            self._end(self._state)
        self._over = True

    def save(self) -> State:
        raise _unsaved()

    def restore(self, state: State) -> None:
        raise _unsaved()


def _unsaved() -> Exception:
    return errors.UnimplementedError(
        None, None, "GeneratorDataset: where a Python generator stands cannot be saved"
    )
