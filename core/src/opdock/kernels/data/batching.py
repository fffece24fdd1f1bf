"""Datasets of stacked elements: batches, padded batches, windows, sparse batches and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes, errors, shapes
from opdock.dtypes import DType
from opdock.kernels.data.base import (
    INFINITE,
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    FollowingIterator,
    State,
    invalid,
)
from opdock.kernels.data.context import Context
from opdock.kernels.data.outcomes import Outcome, drawn, load_error, save_error, settled
from opdock.kernels.data.rows import elements_of, stack
from opdock.shapes import Shape

__all__ = [
    "BatchDataset", "ElementsDataset", "MapAndBatchDataset", "PaddedBatchDataset",
    "SparseBatchDataset", "UnbatchDataset", "WindowDataset",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def batches(n: int, size: int, drop: bool) -> int:
    """How many batches so many elements make."""
    return n if n < 0 else n // size if drop else -(-n // size)


class BatchDataset(Following):
    """Stacks of `size` elements; the last one is smaller, or dropped."""

    whole = False
    """Whether an error takes the place of a whole batch, rather than of what came before it: where
    a map and a batch are one step."""
    stacks = True
    """Whether a batch is its elements, stacked."""

    def __init__(self, source: Dataset, size: int, drop: bool, types: Any, shapes_: Any) -> None:
        if size <= 0:
            raise invalid("Batch size must be greater than zero.")
        super().__init__(source, types, shapes_)
        self.size, self.drop = size, drop

    @property
    def fresh(self) -> bool:
        """Whether nobody else holds an element's arrays: they were made for it."""
        return True

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return batches(self.source.cardinality(), self.size, self.drop)

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """What it follows from; where a map and a batch are one step, what the map follows from."""
        return self.source.sources if self.whole else super().sources

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of another source."""
        return self.over(self.source.of(sources)) if self.whole else super().of(sources)

    def join(self, elements: list[Element]) -> Element:
        """The batch of elements."""
        return stack(elements)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _BatchIterator(self, context)


class _BatchIterator(FollowingIterator):
    saved = ("_over",)

    def __init__(self, dataset: BatchDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset
        self._over = 0

    def next(self) -> Element | None:
        if self._over:
            return None
        dataset = self._dataset
        columns = self.source.columns(dataset.size) if dataset.stacks else None
        if columns is not None and len(columns[0]) == dataset.size:
            return columns
        begun = [] if columns is None else elements_of(columns)
        found = self._whole(begun) if dataset.whole else self._gathered(begun)
        if not found or (self._over and dataset.drop):
            return None
        return dataset.join(found)

    def _gathered(self, found: list[Element]) -> list[Element]:
        step, size = self.source.next, self._dataset.size
        while len(found) < size:
            element = step()
            if element is None:
                self._over = 1
                break
            found.append(element)
        return found

    def _whole(self, found: list[Element]) -> list[Element]:
        error: Exception | None = None
        for _ in range(self._dataset.size - len(found)):
            try:
                element = self.source.next()
            except errors.CancelledError:
                raise
            except errors.OpError as e:
                error = error or e
                continue
            if element is None:
                self._over = 1
                break
            found.append(element)
        if error is not None:
            raise error
        return found


class MapAndBatchDataset(BatchDataset):
    """Batches of what a parallel map makes."""

    whole = True

    def made_by(self, op: str, arguments: Sequence[Any]) -> None:
        """Says which op made it, and the map within."""
        super().made_by(op, arguments)
        self.source.label = self.label

    def join(self, elements: list[Element]) -> Element:
        """The batch of these elements."""
        for parts in zip(*elements, strict=True):
            other = next((p for p in parts if np.shape(p) != np.shape(parts[0])), None)
            if other is not None:
                raise invalid(
                    "Cannot add tensor to the batch: number of elements does not match. Shapes "
                    f"are: [tensor]: {shapes.text(other.shape)}, [batch]: "
                    f"{shapes.text(parts[0].shape)}"
                )
        return super().join(elements)


class PaddedBatchDataset(BatchDataset):
    """Stacks of elements, each padded to a shape, or to the largest of the batch."""

    stacks = False

    def __init__(
        self, source: Dataset, size: int, drop: bool, padded: Sequence[Array],
        values: Sequence[Any], types: Any, shapes_: Any,
    ) -> None:  # fmt: skip
        super().__init__(source, size, drop, types, shapes_)
        if len(padded) != len(source.types):
            raise invalid(
                f"Number of padded shapes ({len(padded)}) must match the number of components in "
                f"the input dataset's elements ({len(source.types)})"
            )
        self._padded = []
        for i, (shape, known) in enumerate(zip(padded, source.shapes, strict=True)):
            if np.any(np.asarray(shape) < -1):
                raise invalid(f"Dimensions of padded shapes must be >= -1, got {np.asarray(shape)}")
            dims = tuple(None if d < 0 else int(d) for d in np.atleast_1d(shape))
            if known is not None and len(known) > len(dims):
                raise invalid(
                    f"All elements in a batch must have the same rank as the padded shape for "
                    f"component{i}: expected rank {len(dims)} but got element with rank "
                    f"{len(known)}"
                )
            self._padded.append(dims)
        for i, (value, dtype) in enumerate(zip(values, source.types, strict=True)):
            if np.ndim(value):
                raise invalid("All padding values must be scalars")
            if dtype.name == "variant":
                raise errors.UnimplementedError(
                    None, None, f"PaddedBatchDataset: component {i} is of type variant"
                )
        self._values = list(values)

    def join(self, elements: list[Element]) -> Element:
        """The batch of these elements."""
        return tuple(
            [self._pad(i, parts) for i, parts in enumerate(zip(*elements, strict=True))]
        )  # fmt: skip

    def _pad(self, component: int, parts: Sequence[Array]) -> Array:
        wanted = self._padded[component]
        for part in parts:
            if part.ndim != len(wanted):
                raise invalid(
                    "All elements in a batch must have the same rank as the padded shape for "
                    f"component{component}: expected rank {len(wanted)} but got element with rank "
                    f"{part.ndim}"
                )
        largest = [max(sizes) for sizes in zip(*(p.shape for p in parts), strict=True)]
        for i, (dim, most) in enumerate(zip(wanted, largest, strict=True)):
            if dim is not None and most > dim:
                raise errors.DataLossError(
                    None, None,
                    "Attempted to pad to a smaller size than the input element: component "
                    f"{component}, dimension {i}: {dim} < {most}",
                )  # fmt: skip
        shape = [m if d is None else d for d, m in zip(wanted, largest, strict=True)]
        out = np.empty((len(parts), *shape), parts[0].dtype)
        out[...] = self._values[component]
        for i, part in enumerate(parts):
            # With "..." a scalar's object is stored, and not the array around it.
            inside: tuple[Any, ...] = (i, *(slice(0, n) for n in part.shape), ...)
            out[inside] = part
        return out


class UnbatchDataset(Following):
    """The slices of elements, one by one."""

    def __init__(self, source: Dataset) -> None:
        inner: list[Shape] = []
        for shape in source.shapes:
            if shape == ():
                raise invalid("Cannot unbatch an element with scalar components.")
            inner.append(None if shape is None else shape[1:])
        super().__init__(source, source.types, inner)

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        if n <= 0 and n != UNKNOWN:
            return n
        sizes = {s[0] for s in self.source.shapes if s}
        known = next((d for d in sizes if d is not None), None)
        return UNKNOWN if n < 0 or known is None else n * known

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _UnbatchIterator(self.source, context)


class _UnbatchIterator(FollowingIterator):
    def __init__(self, source: Dataset, context: Context) -> None:
        super().__init__(source, context)
        self._element: Element = ()
        self._index = self._count = 0

    def next(self) -> Element | None:
        while self._index >= self._count:
            element = self.source.next()
            if element is None:
                return None
            self._take(element, 0)
        index = self._index
        self._index = index + 1
        return tuple([c[index, ...] for c in self._element])

    def _take(self, element: Element, index: int) -> None:
        if any(c.ndim == 0 for c in element):
            raise invalid("Input element must have a non-scalar value in each component.")
        count = len(element[0])
        if any(len(c) != count for c in element):
            raise invalid(
                "Input element must have the same batch size in each component. Component 0 had "
                f"size {count} but another component had size "
                f"{next(len(c) for c in element if len(c) != count)}."
            )
        self._element, self._index, self._count = element, index, count

    def save(self) -> State:
        left = self._element if self._index < self._count else None
        return {**super().save(), "element": left, "index": self._index}

    def restore(self, state: State) -> None:
        super().restore(state)
        if state["element"] is not None:
            self._take(state["element"], state["index"])


class ElementsDataset(Dataset):
    """Elements that are there: a window of another dataset."""

    def __init__(
        self, elements: Sequence[Element], types: Sequence[DType], shapes_: Sequence[Shape]
    ) -> None:
        super().__init__(types, shapes_)
        self.elements = list(elements)

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return len(self.elements)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ElementsIterator(self.elements)


class _ElementsIterator(DatasetIterator):
    def __init__(self, elements: list[Element]) -> None:
        self._elements = elements
        self._next = 0

    def next(self) -> Element | None:
        if self._next >= len(self._elements):
            return None
        self._next += 1
        return self._elements[self._next - 1]

    def save(self) -> State:
        return {"next": self._next}

    def restore(self, state: State) -> None:
        self._next = state["next"]


class WindowDataset(Following):
    """Datasets of `size` elements, `stride` apart; each begins `shift` after the last."""

    def __init__(self, source: Dataset, size: int, shift: int, stride: int, drop: bool) -> None:
        for value, what in (
            (size, "Window size"), (shift, "Window shift"), (stride, "Window stride"),
        ):  # fmt: skip
            if value <= 0:
                raise invalid(f"{what} must be greater than zero.")
        super().__init__(source, [dtypes.variant] * len(source.types), [()] * len(source.types))
        self.size, self.shift, self.stride, self.drop = size, shift, stride, drop

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        n = self.source.cardinality()
        if n in (INFINITE, UNKNOWN):
            return n
        if self.drop:
            return max(0, (n - (self.size - 1) * self.stride - 1) // self.shift + 1)
        return -(-n // self.shift)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _WindowIterator(self, context)


class _WindowIterator(FollowingIterator):
    def __init__(self, dataset: WindowDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._dataset = dataset
        # An error counts where a window begins with it or takes it in, as an element does.
        self._buffer: deque[Outcome] = deque()
        self._gap = 0  # elements to leave out before the next window
        self._over = False

    def next(self) -> Element | None:
        d = self._dataset
        self._fill((d.size - 1) * d.stride + 1)
        taken = [self._buffer[i] for i in range(0, len(self._buffer), d.stride)][: d.size]
        if not taken or (d.drop and len(taken) < d.size):
            return None
        dropped = min(d.shift, len(self._buffer))
        for _ in range(dropped):
            self._buffer.popleft()
        self._gap = d.shift - dropped
        window = [settled(outcome) for outcome in taken]
        columns = zip(*window, strict=True)
        return tuple(
            ElementsDataset([(c,) for c in column], [t], [s])
            for column, t, s in zip(columns, d.source.types, d.source.shapes, strict=True)
        )

    def _fill(self, wanted: int) -> None:
        while not self._over and (self._gap or len(self._buffer) < wanted):
            outcome = drawn(self.source)
            if outcome == (None, None):
                self._over = True
            elif self._gap:
                self._gap -= 1
            else:
                self._buffer.append(outcome)

    def save(self) -> State:
        return {
            **super().save(), "gap": self._gap, "over": int(self._over),
            "buffer": [[e, save_error(x)] for e, x in self._buffer],
        }  # fmt: skip

    def restore(self, state: State) -> None:
        super().restore(state)
        self._buffer = deque((e, load_error(x)) for e, x in state["buffer"])
        self._gap = state["gap"]
        self._over = bool(state["over"])


class SparseBatchDataset(BatchDataset):
    """Batches of dense elements of several sizes as sparse tensors: three variants each."""

    stacks = False

    def __init__(
        self, source: Dataset, size: int, row_shape: Array, types: Any, shapes_: Any
    ) -> None:
        super().__init__(source, size, False, types, shapes_)
        self._row = [None if d < 0 else int(d) for d in np.atleast_1d(row_shape)]

    def join(self, elements: list[Element]) -> Element:
        """The batch of these elements."""
        parts = [e[0] for e in elements]
        for part in parts:
            if part.ndim != len(self._row):
                raise invalid(
                    f"Input element had shape ({list(part.shape)}) that is incompatible with the "
                    f"row shape ({[-1 if d is None else d for d in self._row]})."
                )
        largest = [max(sizes) for sizes in zip(*(p.shape for p in parts), strict=True)]
        shape = []
        for dim, most in zip(self._row, largest, strict=True):
            if dim is not None and most > dim:
                raise errors.DataLossError(
                    None, None,
                    f"Input element had shape ({list(parts[0].shape)}) that is larger than the row "
                    f"shape ({[-1 if d is None else d for d in self._row]}).",
                )  # fmt: skip
            shape.append(most if dim is None else dim)
        indices = [
            np.concatenate([np.full((p.size, 1), i), _places(p)], axis=1)
            for i, p in enumerate(parts)
        ]
        out = np.empty(3, object)
        out[0] = np.concatenate(indices).astype(np.int64)
        out[1] = np.concatenate([p.reshape(-1) for p in parts])
        out[2] = np.array([len(parts), *shape], np.int64)
        return (out,)


def _places(part: Array) -> Array:
    """The indices of all elements, a row each."""
    return np.argwhere(np.ones(part.shape, bool))
